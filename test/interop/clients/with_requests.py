# requests, two requests in one session: URL [FILE to POST]. Prints status and body of the second as JSON.
import json
import sys

import requests

url, *file = sys.argv[1:]
with requests.Session() as session:
    for _ in range(2):
        headers = {"Authorization": "from-the-client"}
        if file:
            with open(file[0], "rb") as body:
                response = session.post(url, headers=headers, data=body)
        else:
            response = session.get(url, headers=headers)
    print(json.dumps({"status": response.status_code, "text": response.text}))
