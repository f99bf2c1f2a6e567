// What node:http makes of the same bytes: a real server and a real client, each on an in-memory stream. The
// second opinion of the differential tests.
import { createServer, type IncomingMessage, request } from 'node:http';
import { Duplex } from 'node:stream';

export type Message = {
  /** Method and target, or status. */
  readonly start: string;
  readonly fields: readonly string[];
  /** undefined where node leaves the body to its caller. */
  body: string | undefined;
  complete: boolean;
};

export type Reading = {
  readonly messages: Message[];
  /** Node's error code, or what ended our own reading. */
  error: string | undefined;
};

/** Lets node's server read each input as one connection that ends after it. */
export function readByServer(inputs: readonly Buffer[]): Promise<Reading[]> {
  const readings = new Map<Duplex, Reading>();
  const server = createServer({ requireHostHeader: false, keepAliveTimeout: 0 });
  server.maxHeadersCount = 0;
  const note = (message: IncomingMessage): void => {
    noteMessage(readings.get(message.socket), `${message.method} ${message.url}`, message);
  };
  server.on('request', note).on('checkContinue', note).on('checkExpectation', note);
  server.on('connect', (message) => {
    note(message);
    const noted = readings.get(message.socket)?.messages.at(-1);
    if (noted !== undefined) noted.complete = true;
    message.socket.destroy();
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    noteError(readings.get(socket), error);
    // Later, so that the bodies of the requests before the invalid one are delivered.
    setImmediate(() => socket.destroy());
  });
  return Promise.all(
    inputs.map((bytes) => {
      const stream = createWire();
      const reading: Reading = { messages: [], error: undefined };
      readings.set(stream, reading);
      server.emit('connection', stream);
      return play(stream, bytes, reading);
    }),
  );
}

/** Lets node's client read each input as the whole response to a request with this method. */
export function readByClient(inputs: readonly { bytes: Buffer; method: string }[]): Promise<Reading[]> {
  return Promise.all(
    inputs.map(({ bytes, method }) => {
      const reading: Reading = { messages: [], error: undefined };
      const stream = createWire();
      const sent = request({
        method,
        path: 'o.test:443',
        createConnection: () => stream,
        maxHeaderSize: 16_384,
      });
      sent.maxHeadersCount = 0;
      sent.on('information', ({ statusCode, rawHeaders }) => {
        reading.messages.push({ start: `${statusCode}`, fields: rawHeaders, body: '', complete: true });
      });
      const noteHandedOver = ({ statusCode, rawHeaders }: IncomingMessage): void => {
        reading.messages.push({
          start: `${statusCode}`,
          fields: rawHeaders,
          body: undefined,
          complete: true,
        });
        stream.destroy();
      };
      sent.on('upgrade', noteHandedOver).on('connect', noteHandedOver);
      sent.on('response', (message) => noteMessage(reading, `${message.statusCode}`, message));
      sent.on('error', (error) => noteError(reading, error));
      sent.end();
      return play(stream, bytes, reading);
    }),
  );
}

function createWire(): Duplex {
  return new Duplex({
    read: () => undefined,
    write: (_chunk, _encoding, done) => done(),
    final: (done) => done(),
  });
}

/** Sends the bytes, then, once they were delivered, the end. */
function play(stream: Duplex, bytes: Buffer, reading: Reading): Promise<Reading> {
  return new Promise((resolve) => {
    stream.on('error', () => undefined);
    stream.on('close', () => setImmediate(resolve, reading));
    setImmediate(() => {
      if (bytes.length > 0) stream.push(bytes);
      setImmediate(() => {
        if (!stream.destroyed) stream.push(null);
      });
    });
  });
}

function noteMessage(reading: Reading | undefined, start: string, message: IncomingMessage): void {
  if (reading === undefined) throw new Error('a message on a stream that was never opened');
  const noted: Message = { start, fields: message.rawHeaders, body: '', complete: false };
  reading.messages.push(noted);
  message.on('data', (piece: Buffer) => {
    noted.body += piece.toString('latin1');
  });
  message.on('end', () => {
    noted.complete = message.complete;
  });
  message.on('error', (error) => noteError(reading, error));
}

function noteError(reading: Reading | undefined, error: NodeJS.ErrnoException): void {
  if (reading !== undefined) reading.error ??= error.code ?? error.message;
}
