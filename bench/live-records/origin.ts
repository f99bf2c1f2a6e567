// An origin that responds to each request with a few bytes. Prints its port.
import { type AddressInfo, createServer } from 'node:net';

const RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

const server = createServer({ noDelay: true }, (socket) => {
  let rest = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    const heads = (rest + text).split('\r\n\r\n');
    rest = heads.pop() ?? '';
    if (heads.length > 0) socket.write(RESPONSE.repeat(heads.length));
  });
  socket.on('error', () => socket.destroy());
});
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
