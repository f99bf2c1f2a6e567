"""Clients for Python: `python_clients.py CLIENT`. The same requests as javascript.mjs makes."""

import asyncio
import io
import json
import os
import sys
import time

API = "https://api.test"
BODY = b"x" * 1000
MESSAGES = [{"role": "user", "content": "hello"}]


def measure(events):
    times = [time.monotonic() for event in events if event]
    print(f"spread {round((times[-1] - times[0]) * 1000)}")


async def measure_async(events):
    times = [time.monotonic() async for event in events if event]
    print(f"spread {round((times[-1] - times[0]) * 1000)}")


def try_all(get, post, stream=None):
    for _ in range(3):
        assert get(f"{API}/echo")["method"] == "GET"
    assert post(f"{API}/echo", BODY)["bytes"] == len(BODY)
    if stream:
        measure(stream(f"{API}/stream"))


def urllib():
    from urllib.request import urlopen

    try_all(
        lambda url: json.load(urlopen(url)),
        lambda url, body: json.load(urlopen(url, body)),
        lambda url: urlopen(url),
    )


def requests():
    import requests

    session = requests.Session()
    try_all(
        lambda url: session.get(url).json(),
        lambda url, body: session.post(url, body).json(),
        lambda url: session.get(url, stream=True).iter_lines(chunk_size=1),
    )


def niquests():
    import niquests

    session = niquests.Session()
    try_all(
        lambda url: session.get(url).json(),
        lambda url, body: session.post(url, body).json(),
        lambda url: session.get(url, stream=True).iter_lines(chunk_size=1),
    )


def try_streaming(client, body_name):
    """A client whose `stream` is a context manager; `body_name` is what its `post` calls the body."""

    def stream(url):
        with client.stream("GET", url) as response:
            yield from response.iter_lines()

    try_all(
        lambda url: client.get(url).json(),
        lambda url, body: client.post(url, **{body_name: body}).json(),
        stream,
    )


def httpx(http2=False):
    import httpx

    try_streaming(httpx.Client(http2=http2), "content")


def httpx_h2():
    httpx(http2=True)


def curl_cffi(**options):
    from curl_cffi import requests

    try_streaming(requests.Session(**options), "data")


def curl_cffi_chrome():
    curl_cffi(impersonate="chrome")


def aiohttp(trust_env=False):
    import aiohttp

    async def main():
        async with aiohttp.ClientSession(trust_env=trust_env) as session:
            for _ in range(3):
                async with session.get(f"{API}/echo") as response:
                    assert (await response.json())["method"] == "GET"
            async with session.post(f"{API}/echo", data=BODY) as response:
                assert (await response.json())["bytes"] == len(BODY)
            async with session.get(f"{API}/stream") as response:
                await measure_async(response.content)

    asyncio.run(main())


def aiohttp_env():
    aiohttp(trust_env=True)


def aiohttp_websocket():
    import aiohttp

    async def main():
        async with aiohttp.ClientSession(trust_env=True) as session:
            async with session.ws_connect("wss://ws.test/") as socket:
                await socket.send_str("hello")
                assert (await socket.receive()).data == "hello"

    asyncio.run(main())


def urllib3(pool=None):
    import urllib3

    pool = pool or urllib3.PoolManager()
    try_all(
        lambda url: pool.request("GET", url, retries=False).json(),
        lambda url, body: pool.request("POST", url, body=body, retries=False).json(),
        lambda url: pool.request("GET", url, preload_content=False, retries=False).stream(1024),
    )


def urllib3_proxy():
    from urllib3 import ProxyManager

    urllib3(ProxyManager(os.environ["HTTPS_PROXY"]))


def httplib2():
    import httplib2

    http = httplib2.Http()
    try_all(
        lambda url: json.loads(http.request(url)[1]),
        lambda url, body: json.loads(http.request(url, "POST", body)[1]),
    )


def pycurl(cainfo=None):
    import pycurl

    def perform(url, body=None):
        output = io.BytesIO()
        curl = pycurl.Curl()
        curl.setopt(curl.URL, url)
        curl.setopt(curl.WRITEDATA, output)
        if body is not None:
            curl.setopt(curl.POSTFIELDS, body)
        if cainfo is not None:
            curl.setopt(curl.CAINFO, cainfo)
        curl.perform()
        return json.loads(output.getvalue())

    try_all(perform, perform)


def pycurl_cainfo():
    pycurl(os.environ["SSL_CERT_FILE"])


def openai():
    from openai import OpenAI

    client = OpenAI(base_url=f"{API}/v1", max_retries=0)
    client.chat.completions.create(model="model", messages=MESSAGES)
    chunks = client.chat.completions.create(model="model", messages=MESSAGES, stream=True)
    measure(chunk.choices[0].delta.content for chunk in chunks)


def openai_async():
    from openai import AsyncOpenAI

    async def main():
        client = AsyncOpenAI(base_url=f"{API}/v1", max_retries=0)
        calls = [client.chat.completions.create(model="model", messages=MESSAGES) for _ in range(20)]
        await asyncio.gather(*calls)

    asyncio.run(main())


def anthropic():
    from anthropic import Anthropic

    client = Anthropic(base_url=API, max_retries=0)
    request = {"model": "model", "max_tokens": 10, "messages": MESSAGES}
    client.messages.create(**request)
    chunks = client.messages.create(**request, stream=True)
    measure(chunk.type == "content_block_delta" for chunk in chunks)


def genai():
    from google import genai

    client = genai.Client(api_key="placeholder", http_options={"base_url": API})
    client.models.generate_content(model="model", contents="hello")
    measure(chunk.text for chunk in client.models.generate_content_stream(model="model", contents="hello"))


def boto3():
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "s3",
        endpoint_url="https://s3.test",
        region_name="us-east-1",
        aws_access_key_id="placeholder",
        aws_secret_access_key="placeholder",
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}),
    )
    client.list_buckets()
    client.put_object(Bucket="bucket", Key="object", Body=BODY)
    assert client.get_object(Bucket="bucket", Key="object")["Body"].read() == BODY


def grpc():
    import grpc

    channel = grpc.secure_channel("grpc.test:443", grpc.ssl_channel_credentials())
    call = channel.unary_unary("/tests.Api/Unary", str.encode, bytes.decode)
    for _ in range(2):
        assert call("hello", timeout=10) == "hello"
    count = channel.unary_stream("/tests.Api/Count", str.encode, bytes.decode)
    measure(count("hello", timeout=10))
    chat = channel.stream_stream("/tests.Api/Chat", str.encode, bytes.decode)
    texts = [str(number) for number in range(100)]
    assert list(chat(iter(texts), timeout=10)) == texts


def grpc_aio():
    import grpc

    async def main():
        async with grpc.aio.secure_channel("grpc.test:443", grpc.ssl_channel_credentials()) as channel:
            call = channel.unary_unary("/tests.Api/Unary", str.encode, bytes.decode)
            for _ in range(2):
                assert await call("hello", timeout=10) == "hello"
            await measure_async(channel.unary_stream("/tests.Api/Count", str.encode, bytes.decode)("hello"))

    asyncio.run(main())


def websockets():
    from websockets.sync.client import connect

    with connect("wss://ws.test/") as socket:
        socket.send("hello")
        assert socket.recv() == "hello"


def websockets_asyncio():
    from websockets.asyncio.client import connect

    async def main():
        async with connect("wss://ws.test/") as socket:
            await socket.send("hello")
            assert await socket.recv() == "hello"

    asyncio.run(main())


def websocket_client():
    import websocket

    socket = websocket.create_connection("wss://ws.test/", timeout=10)
    socket.send("hello")
    assert socket.recv() == "hello"
    socket.close()


def slack_sdk():
    from slack_sdk import WebClient

    assert WebClient(token="placeholder", base_url=f"{API}/api/").auth_test()["ok"]


def stripe():
    import stripe

    client = stripe.StripeClient("placeholder", base_addresses={"api": API}, max_network_retries=0)
    client.v1.customers.list()


def stripe_bundle():
    import stripe as library

    library.ca_bundle_path = os.environ["SSL_CERT_FILE"]
    stripe()


def pygithub():
    from github import Auth, Github

    client = Github(base_url="https://github.test/api/v3", auth=Auth.Token("placeholder"), retry=None)
    assert client.get_user().login == "agent"


def langchain_openai():
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="model", base_url=f"{API}/v1", max_retries=0)
    model.invoke("hello")
    measure(chunk.content for chunk in model.stream("hello"))


def google_storage():
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    options = {"api_endpoint": API}
    client = storage.Client(project="project", credentials=AnonymousCredentials(), client_options=options)
    list(client.list_buckets(retry=None))


def main():
    try:
        globals()[sys.argv[1]]()
    except Exception as error:
        causes = []
        while error is not None and len(causes) < 5:
            causes.append(f"{type(error).__name__}: {error}")
            error = error.__cause__ or error.__context__
        sys.exit("; caused by ".join(causes))


main()
