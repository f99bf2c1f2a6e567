// goproxy for comparison: it intercepts every CONNECT with a minted leaf, sets one Authorization, and verifies the upstream,
// which it does not do by default. Arguments: listen address, CA certificate, CA key, upstream CA. The header value is in
// BENCH_CREDENTIAL. Every name resolves to 127.0.0.1, as in the whole benchmark.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/elazarl/goproxy"
)

// certificates keeps each minted leaf: without a store goproxy mints one for each CONNECT.
type certificates struct{ known sync.Map }

func (c *certificates) Fetch(host string, mint func() (*tls.Certificate, error)) (*tls.Certificate, error) {
	if found, ok := c.known.Load(host); ok {
		return found.(*tls.Certificate), nil
	}
	certificate, err := mint()
	if err == nil {
		c.known.Store(host, certificate)
	}
	return certificate, err
}

func main() {
	listen, caCertificate, caKey, upstreamCA := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	ca, err := tls.LoadX509KeyPair(caCertificate, caKey)
	if err != nil {
		log.Fatal(err)
	}
	if ca.Leaf, err = x509.ParseCertificate(ca.Certificate[0]); err != nil {
		log.Fatal(err)
	}
	pem, err := os.ReadFile(upstreamCA)
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)

	dialer := &net.Dialer{}
	proxy := goproxy.NewProxyHttpServer()
	proxy.AllowHTTP2 = true
	proxy.CertStore = &certificates{}
	proxy.Tr = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return dialer.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		},
		TLSClientConfig: &tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(64)},
		// By default two: most clients would wait for a handshake.
		MaxIdleConnsPerHost: 512,
		DisableCompression:  true,
	}
	intercept := &goproxy.ConnectAction{Action: goproxy.ConnectMitm, TLSConfig: goproxy.TLSConfigFromCA(&ca)}
	proxy.OnRequest().HandleConnectFunc(func(host string, _ *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
		return intercept, host
	})
	credential := os.Getenv("BENCH_CREDENTIAL")
	proxy.OnRequest().DoFunc(func(request *http.Request, _ *goproxy.ProxyCtx) (*http.Request, *http.Response) {
		request.Header.Set("Authorization", credential)
		return request, nil
	})
	log.Fatal(http.ListenAndServe(listen, proxy))
}
