// A relay on loopback to the given port, without a backlog for connections that it has not accepted. Stopped by SIGSTOP it
// is a black hole: connection attempts get no response.
import { connect, createServer, type AddressInfo } from 'node:net';

const to = Number(process.argv[2]);
const server = createServer((client) => {
  const host = connect(to, '127.0.0.1');
  client.pipe(host).pipe(client);
  for (const [socket, other] of [
    [client, host],
    [host, client],
  ] as const)
    socket.on('error', () => other.destroy()).on('close', () => other.destroy());
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  console.log(JSON.stringify({ port: (server.address() as AddressInfo).port }));
});
