// hudsucker for comparison: it intercepts every CONNECT with a minted leaf, sets one Authorization, and verifies the upstream
// against the given CA. Arguments: listen address, CA certificate, CA key, upstream CA. The header value is in
// BENCH_CREDENTIAL. Every name resolves to 127.0.0.1, as in the whole benchmark. One thread, as all others have one core.
use hudsucker::{
    Body, HttpContext, HttpHandler, Proxy, RequestOrResponse,
    certificate_authority::RcgenAuthority,
    hyper::{
        Request, Version,
        header::{AUTHORIZATION, HOST, HeaderValue},
    },
    rcgen::{Issuer, KeyPair},
    rustls::{
        ClientConfig, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, pem::PemObject},
    },
};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::{HttpConnector, dns::Name};
use std::{convert::Infallible, env, fs, net::SocketAddr, sync::Arc};
use tokio::net::TcpSocket;

#[derive(Clone)]
struct Inject(HeaderValue);

impl HttpHandler for Inject {
    async fn handle_request(&mut self, _context: &HttpContext, mut request: Request<Body>) -> RequestOrResponse {
        if request.method() != "CONNECT" {
            // The upstream is asked over HTTP/1.1, also for a client of HTTP/2.
            *request.version_mut() = Version::HTTP_11;
            if let Some(authority) = request.uri().authority().cloned() {
                if !request.headers().contains_key(HOST) {
                    let host = HeaderValue::from_str(authority.as_str()).expect("an authority is a field value");
                    request.headers_mut().insert(HOST, host);
                }
            }
            request.headers_mut().insert(AUTHORIZATION, self.0.clone());
        }
        request.into()
    }
}

async fn run() {
    let arguments: Vec<String> = env::args().collect();
    let [_, listen, ca_certificate, ca_key, upstream_ca] = arguments.as_slice() else {
        panic!("arguments: listen address, CA certificate, CA key, upstream CA");
    };
    let read = |path: &String| fs::read_to_string(path).expect("a readable file");
    let key = KeyPair::from_pem(&read(ca_key)).expect("a private key");
    let issuer = Issuer::from_ca_cert_pem(&read(ca_certificate), key).expect("a CA certificate");
    let authority = RcgenAuthority::new(issuer, 1_000, aws_lc_rs::default_provider());

    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(upstream_ca).expect("a certificate"))
        .expect("a CA certificate");
    let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("TLS versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let loopback = tower::service_fn(|_: Name| async {
        Ok::<_, Infallible>(std::iter::once(SocketAddr::from(([127, 0, 0, 1], 0))))
    });
    let mut tcp = HttpConnector::new_with_resolver(loopback);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(tcp);

    // Accepted sockets inherit TCP_NODELAY. Without it each new tunnel waits 44 ms for a delayed acknowledgement.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_nodelay(true).expect("TCP_NODELAY");
    socket.bind(listen.parse().expect("an address")).expect("a free port");
    let listener = socket.listen(1024).expect("a listener");

    let credential = env::var("BENCH_CREDENTIAL").expect("BENCH_CREDENTIAL");
    Proxy::builder()
        .with_listener(listener)
        .with_ca(authority)
        .with_http_connector(connector)
        .with_http_handler(Inject(HeaderValue::from_str(&credential).expect("a field value")))
        .build()
        .expect("a proxy")
        .start()
        .await
        .expect("a running proxy");
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(run());
}
