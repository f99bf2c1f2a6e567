// Node's own WebSocket through the proxy: URL. Sends two messages, prints the received messages, closes.
const [url] = process.argv.slice(2);
const socket = new WebSocket(url);
socket.binaryType = 'arraybuffer';
const received = [];
socket.onopen = () => socket.send('one');
socket.onmessage = ({ data }) => {
  received.push(data);
  if (received.length === 1) socket.send(new Uint8Array(70_000).fill(0x78));
  else socket.close(1000, 'done');
};
socket.onclose = ({ code }) =>
  console.log(JSON.stringify({ code, first: received[0], bytes: received[1]?.byteLength }));
