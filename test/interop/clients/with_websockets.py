# The websockets library through the proxy: URL. Sends two messages, prints the received messages, closes.
import json
import sys

from websockets.sync.client import connect

with connect(sys.argv[1], max_size=None) as socket:
    socket.send("one")
    first = socket.recv()
    socket.send(b"x" * 70_000)
    second = socket.recv()
    socket.close(1000, "done")
print(json.dumps({"code": socket.close_code, "first": first, "bytes": len(second)}))
