# Python's urllib: URL [FILE to POST]. Prints status and body as JSON.
import json
import sys
import urllib.request

url, *file = sys.argv[1:]
data = open(file[0], "rb").read() if file else None
request = urllib.request.Request(url, data=data, headers={"Authorization": "from-the-client"})
with urllib.request.urlopen(request) as response:
    print(json.dumps({"status": response.status, "text": response.read().decode()}))
