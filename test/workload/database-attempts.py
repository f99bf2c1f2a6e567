"""Attempts to read what belongs to another deployment, besides those of attempts.py, which is in the same directory. The arguments and what is
printed are the same.
"""
import base64
import hashlib
import hmac
import json
import os
import socket
import struct
import sys

import attempts as base


def read_message(server):
    head = receive(server, 5)
    return head[:1], receive(server, struct.unpack('!I', head[1:])[0] - 4)


def receive(server, length):
    found = b''
    while len(found) < length:
        piece = server.recv(length - len(found))
        if not piece:
            raise OSError('the connection was closed')
        found += piece
    return found


def send_message(server, kind, body):
    server.sendall(kind + struct.pack('!I', 4 + len(body)) + body)


def read_row(path):
    """The secret of the neighbour in its database, as its role (RFC 5802, SCRAM-SHA-256)."""
    user, password = base.params['role'], base.params['password']
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.settimeout(5)
        server.connect(path)
        texts = ['user', user, 'database', base.params['database'], '']
        body = b'\0\3\0\0' + b''.join(text.encode() + b'\0' for text in texts)
        server.sendall(struct.pack('!I', 4 + len(body)) + body)
        first = 'n=,r=' + base64.b64encode(os.urandom(12)).decode()
        while True:
            kind, body = read_message(server)
            if kind == b'E':
                raise OSError(body.decode(errors='replace'))
            if kind == b'D':
                return base.params['secret'].encode() in body
            if kind == b'Z':
                send_message(server, b'Q', b'select secret from secrets\0')
            if kind != b'R':
                continue
            step = struct.unpack('!I', body[:4])[0]
            if step == 10:
                text = ('n,,' + first).encode()
                send_message(server, b'p', b'SCRAM-SHA-256\0' + struct.pack('!I', len(text)) + text)
            elif step == 11:
                send_message(server, b'p', prove(password, first, body[4:].decode()))


def prove(password, first, challenge):
    fields = dict(part.split('=', 1) for part in challenge.split(','))
    salted = hashlib.pbkdf2_hmac('sha256', password.encode(), base64.b64decode(fields['s']), int(fields['i']))
    without_proof = 'c=biws,r=' + fields['r']
    client_key = hmac.digest(salted, b'Client Key', 'sha256')
    message = ','.join([first, challenge, without_proof]).encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), message, 'sha256')
    proof = bytes(a ^ b for a, b in zip(client_key, signature))
    return (without_proof + ',p=' + base64.b64encode(proof).decode()).encode()


@base.attempt
def the_database_by_the_socket_of_its_deployment():
    return read_row(base.params['bridgeSocket'])


@base.attempt
def the_database_at_its_server():
    return read_row(base.params['serverSocket'])


@base.attempt
def a_file_of_the_build():
    return base.read(base.params['buildFile'])


@base.attempt
def the_socket_that_the_gateway_uses():
    return base.fetch(socket.AF_UNIX, base.params['pinnedSocket'])


if __name__ == '__main__':
    base.params = json.loads(sys.argv[1])
    for name in sys.argv[2:]:
        print(json.dumps(base.report(name)), flush=True)
