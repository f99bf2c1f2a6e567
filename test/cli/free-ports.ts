// Preloaded into `sallyport start`: its origin and callback endpoint take free ports instead of 9443 and 9444, so that two
// runs of the tests on one machine do not collide.
import { Server } from 'node:net';

const FIXED: readonly unknown[] = [9443, 9444];
const listen = Server.prototype.listen;

Server.prototype.listen = function (this: Server, ...args: unknown[]): Server {
  const [port, ...rest] = args;
  return Reflect.apply(listen, this, [FIXED.includes(port) ? 0 : port, ...rest]) as Server;
};
