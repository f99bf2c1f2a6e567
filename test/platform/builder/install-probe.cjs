// What a hostile package does when it is installed: it connects to each of the given places, directly and through the proxy of its environment, and
// writes what has responded beside itself. `install-probe.cjs OUT PLACES`, where PLACES is JSON.
const { globSync, writeFileSync } = require('node:fs');
const { connect } = require('node:net');

const TIMEOUT_MS = 4_000;

/** Whether a byte of the place comes; the question is sent first. */
function ask(options, question, expected) {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(options, () => socket.write(question));
    const end = (outcome) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    const timer = setTimeout(() => end('silent'), TIMEOUT_MS);
    socket.on('data', (piece) => {
      text += piece.toString('latin1');
      if (text.length > 0 && (expected === undefined || text.includes(expected))) end('reached');
    });
    socket.on('error', ({ code }) => end(`error ${code}`));
    socket.on('close', () => end(`closed ${text.split('\r\n')[0]}`));
  });
}

async function direct({ path, pattern, host, port, question, expected }) {
  const bytes = Buffer.from(question, 'base64');
  if (host !== undefined) return ask({ host, port }, bytes, expected);
  const paths = pattern === undefined ? [path] : globSync(pattern);
  if (paths.length === 0) return 'error ENOENT';
  return ask({ path: paths[0] }, bytes, expected);
}

/** As a client of HTTP, and as one that wants a tunnel. */
async function proxied({ host, port, expected }) {
  const proxy = process.env.HTTP_PROXY;
  if (proxy === undefined || host === undefined) return [];
  const { hostname, port: proxyPort } = new URL(proxy);
  const address = { host: hostname, port: Number(proxyPort) };
  const fields = `Host: ${host}:${port}\r\nConnection: close\r\n\r\n`;
  const get = await ask(address, `GET http://${host}:${port}/ HTTP/1.1\r\n${fields}`, expected ?? 'reached');
  const tunnel = await ask(address, `CONNECT ${host}:${port} HTTP/1.1\r\n${fields}`, 'HTTP/1.1 200');
  return [get, tunnel];
}

async function main([out, places]) {
  const found = {};
  for (const place of JSON.parse(places))
    found[place.name] = [await direct(place), ...(await proxied(place))];
  writeFileSync(out, JSON.stringify(found));
}

main(process.argv.slice(2));
