# grpcio, with proxy and CA from its own environment variables: HOST:PORT. One call of each kind and one that fails; prints
# the results.
import json
import sys

import grpc

credential = [("authorization", "from-the-client")]
with grpc.secure_channel(sys.argv[1], grpc.ssl_channel_credentials()) as channel:
    one = channel.unary_unary("/test.Echo/Unary")
    unary = one(b"one", metadata=credential).decode()
    server = channel.unary_stream("/test.Echo/ServerStream")(b"a b", metadata=credential)
    server_stream = [message.decode() for message in server]
    words = [b"a", b"b"]
    client_stream = channel.stream_unary("/test.Echo/ClientStream")(iter(words), metadata=credential)
    duplex = channel.stream_stream("/test.Echo/Bidi")(iter(words), metadata=credential)
    bidi = [message.decode() for message in duplex]
    try:
        one(b"fail", metadata=credential)
        failure = None
    except grpc.RpcError as error:
        failure = f"{error.code().value[0]} {error.details()}"
    big = one(b"b" * 1_000_000, metadata=credential)
results = {"unary": unary, "serverStream": server_stream, "clientStream": client_stream.decode(), "bidi": bidi}
print(json.dumps({**results, "failure": failure, "big": len(big)}))
