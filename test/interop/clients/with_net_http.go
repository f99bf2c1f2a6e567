// net/http of Go, which offers h2 by itself: URL [FILE to POST]. Prints status and body as JSON.
package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
)

func main() {
	request, _ := http.NewRequest("GET", os.Args[1], nil)
	if len(os.Args) > 2 {
		file, err := os.Open(os.Args[2])
		if err != nil {
			panic(err)
		}
		request, _ = http.NewRequest("POST", os.Args[1], file)
	}
	request.Header.Set("Authorization", "from-the-client")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		panic(err)
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{"status": response.StatusCode, "text": string(text)})
}
