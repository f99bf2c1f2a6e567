module clients

go 1.24.0

require (
	github.com/coder/websocket v1.8.15
	github.com/gorilla/websocket v1.5.3
	google.golang.org/grpc v1.85.0
)
