// Clients for Go: `clients CLIENT`. The same requests as javascript.mjs makes.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	coder "github.com/coder/websocket"
	gorilla "github.com/gorilla/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

const api = "https://api.test"

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func report(times []time.Time) {
	fmt.Printf("spread %d\n", times[len(times)-1].Sub(times[0]).Milliseconds())
}

func tryAll(client *http.Client) {
	read := func(response *http.Response, err error) map[string]any {
		check(err)
		defer response.Body.Close()
		var value map[string]any
		check(json.NewDecoder(response.Body).Decode(&value))
		return value
	}
	for range 3 {
		if read(client.Get(api + "/echo"))["method"] != "GET" {
			check(fmt.Errorf("method"))
		}
	}
	body := strings.NewReader(strings.Repeat("x", 1000))
	if read(client.Post(api+"/echo", "text/plain", body))["bytes"] != 1000.0 {
		check(fmt.Errorf("body"))
	}
	response, err := client.Get(api + "/stream")
	check(err)
	defer response.Body.Close()
	var times []time.Time
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if lines.Text() != "" {
			times = append(times, time.Now())
		}
	}
	report(times)
}

func overHTTP1() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	transport.ForceAttemptHTTP2 = false
	transport.TLSClientConfig = &tls.Config{NextProtos: []string{"http/1.1"}}
	return &http.Client{Transport: transport}
}

// Messages are their bytes: there is no generated code.
type bytesCodec struct{}

func (bytesCodec) Marshal(value any) ([]byte, error) { return *value.(*[]byte), nil }
func (bytesCodec) Unmarshal(data []byte, value any) error {
	*value.(*[]byte) = append([]byte{}, data...)
	return nil
}
func (bytesCodec) Name() string { return "proto" }

func overGRPC() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	secure := grpc.WithTransportCredentials(credentials.NewTLS(nil))
	codec := grpc.WithDefaultCallOptions(grpc.ForceCodec(bytesCodec{}))
	connection, err := grpc.NewClient("dns:///grpc.test:443", secure, codec)
	check(err)
	defer connection.Close()
	in := []byte("hello")
	for range 2 {
		var out []byte
		check(connection.Invoke(ctx, "/tests.Api/Unary", &in, &out))
		if string(out) != "hello" {
			check(fmt.Errorf("the origin sent %q", out))
		}
	}
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/tests.Api/Count")
	check(err)
	check(stream.SendMsg(&in))
	check(stream.CloseSend())
	var times []time.Time
	for {
		var out []byte
		if err := stream.RecvMsg(&out); err == io.EOF {
			break
		} else {
			check(err)
		}
		times = append(times, time.Now())
	}
	report(times)
}

func main() {
	ctx := context.Background()
	switch os.Args[1] {
	case "http":
		tryAll(http.DefaultClient)
	case "http1":
		tryAll(overHTTP1())
	case "grpc":
		overGRPC()
	case "gorilla":
		socket, _, err := gorilla.DefaultDialer.Dial("wss://ws.test/", nil)
		check(err)
		check(socket.WriteMessage(gorilla.TextMessage, []byte("hello")))
		_, _, err = socket.ReadMessage()
		check(err)
	case "coder":
		socket, _, err := coder.Dial(ctx, "wss://ws.test/", nil)
		check(err)
		check(socket.Write(ctx, coder.MessageText, []byte("hello")))
		_, _, err = socket.Read(ctx)
		check(err)
	default:
		check(fmt.Errorf("there is no client %s", os.Args[1]))
	}
}
