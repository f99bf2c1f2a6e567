"""A callback endpoint: returns the headers that Sallyport sets for a host."""

import hmac
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = os.environ["CALLBACK_KEY"].encode()


def token_for(host):
    return f"short-lived-token-for-{host}"  # ask your identity provider here


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        if not hmac.compare_digest(self.headers.get("X-Callback-Key", "").encode(), KEY):
            return self.send_error(403)
        try:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {"Authorization": f"Bearer {token_for(request['host'])}"}
        except Exception:
            return self.send_error(500)
        body = json.dumps({"headers": headers}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Endpoint)
print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
server.serve_forever()
