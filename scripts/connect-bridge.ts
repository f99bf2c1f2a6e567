// `node scripts/connect-bridge.ts <listen port> <proxy host:port> <target host:port>`: a plain port for tools without
// proxy support (h2spec, h2load). Each connection to it on loopback is forwarded to the target through a CONNECT at the
// proxy; the tool speaks TLS through it. Prints its port; 0 chooses a free one.
import { request } from 'node:http';
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { pipeline } from 'node:stream/promises';

const [listenPort, proxy, target] = process.argv.slice(2);
if (listenPort === undefined || proxy === undefined || target === undefined)
  throw new Error('usage: node scripts/connect-bridge.ts <listen port> <proxy host:port> <target host:port>');
const proxyUrl = new URL(`http://${proxy}`);

const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
  const asked = request({
    host: proxyUrl.hostname,
    port: proxyUrl.port,
    method: 'CONNECT',
    path: target,
    headers: { host: target },
  });
  client.on('error', () => asked.destroy());
  asked.once('error', () => client.destroy());
  asked.once('connect', (response, tunnel) => {
    if (response.statusCode !== 200) {
      console.error(`CONNECT ${target} failed with ${response.statusCode}`);
      tunnel.destroy();
      client.destroy();
      return;
    }
    join(client, tunnel as Socket);
  });
  asked.end();
});
server.listen(Number(listenPort), '127.0.0.1', () => {
  console.log((server.address() as AddressInfo).port);
});

/** A reset on one side resets the other. */
function join(client: Socket, tunnel: Socket): void {
  tunnel.setNoDelay(true);
  const cut = (): void => {
    client.destroy();
    tunnel.destroy();
  };
  pipeline(client, tunnel).catch(cut);
  pipeline(tunnel, client).catch(cut);
}
