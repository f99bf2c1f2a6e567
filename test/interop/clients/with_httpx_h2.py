# httpx with HTTP/2, two requests in one client: URL [FILE to POST]. Prints status and body of the second as JSON.
import json
import os
import ssl
import sys

import h2  # noqa: F401
import httpx

url, *file = sys.argv[1:]
context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
headers = {"Authorization": "from-the-client"}
with httpx.Client(http2=True, verify=context, headers=headers) as client:
    for _ in range(2):
        response = client.post(url, content=open(file[0], "rb").read()) if file else client.get(url)
    print(json.dumps({"status": response.status_code, "text": response.text}))
