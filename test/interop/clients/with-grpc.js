// grpc-js, with proxy and CA from its own environment variables: HOST:PORT. One call of each kind and one that fails; prints
// the results.
import { once } from 'node:events';
import { Client, credentials, Metadata } from '@grpc/grpc-js';

const client = new Client(process.argv[2], credentials.createSsl());
const bytes = (value) => Buffer.from(value);
const metadata = new Metadata();
metadata.set('authorization', 'from-the-client');
const path = (name) => [`/test.Echo/${name}`, bytes, bytes];

function settle(start) {
  return new Promise((resolve) => {
    start((error, response) => resolve(error ? `${error.code} ${error.details}` : String(response)));
  });
}

async function readAll(call) {
  const messages = [];
  for await (const message of call) messages.push(String(message));
  return messages;
}

const unary = await settle((done) => client.makeUnaryRequest(...path('Unary'), 'one', metadata, done));
const serverStream = await readAll(client.makeServerStreamRequest(...path('ServerStream'), 'a b', metadata));
const clientStream = await settle((done) => {
  const call = client.makeClientStreamRequest(...path('ClientStream'), metadata, done);
  for (const word of ['a', 'b']) call.write(word);
  call.end();
});
const duplex = client.makeBidiStreamRequest(...path('Bidi'), metadata);
const bidi = [];
for (const word of ['a', 'b']) {
  duplex.write(word);
  bidi.push(String(await once(duplex, 'data')));
}
duplex.end();
const failure = await settle((done) => client.makeUnaryRequest(...path('Unary'), 'fail', metadata, done));
const big = await settle((done) => {
  client.makeUnaryRequest(...path('Unary'), Buffer.alloc(1_000_000, 'b'), metadata, done);
});
console.log(JSON.stringify({ unary, serverStream, clientStream, bidi, failure, big: big.length }));
client.close();
