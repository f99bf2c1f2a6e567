// The part of the preload (node-preload.ts) for Node versions that ignore the proxy variables: 18 to 22.20, 23, and 24
// before 24.5. No undici is loaded: the one that Sallyport has needs Node 22.19, and Node's own has an Agent already.

/**
 * Agents that make their connections as Node does get them through CONNECT, for http:// too, and so does the Agent of
 * fetch. Entries of NO_PROXY mean what they mean to newer versions of Node, except ranges of addresses: those go through
 * the proxy, which tunnels them.
 */
export const oldNodePreload = `function connectThroughProxy() {
  const proxy = proxyUrl(process.env.HTTPS_PROXY);
  if (!proxy) return;
  const http = require('http'), net = require('net');
  const request = http.request;
  const entries = (process.env.NO_PROXY || '').toLowerCase().split(',').map((entry) => entry.trim());
  const isDirect = (host, port) =>
    [host, host + ':' + port, '*'].some((name) => entries.includes(name)) ||
    entries.some((entry) => /^\\*?\\../.test(entry) && host.endsWith(entry.replace('*', '')));
  const login = Buffer.from(decodeURIComponent(proxy.username) + ':' + decodeURIComponent(proxy.password));

  function tunnel(host, port, callback) {
    const authority = (net.isIPv6(host) ? '[' + host + ']' : host) + ':' + port;
    const headers = { Host: authority };
    if (login.length > 1) headers['Proxy-Authorization'] = 'Basic ' + login.toString('base64');
    const createConnection = () => net.connect(Number(proxy.port || 80), proxy.hostname.replace(/[[\\]]/g, ''));
    request({ method: 'CONNECT', path: authority, headers, createConnection })
      .once('error', callback)
      .once('connect', (response, socket) => {
        if (response.statusCode === 200) return callback(null, socket);
        socket.destroy();
        callback(new Error('The proxy refused ' + authority + ': ' + response.statusCode + ' ' + response.statusMessage));
      })
      .end();
  }

  function patchAgent(Agent, isTls) {
    const connect = Agent.prototype.createConnection;
    Agent.prototype.createConnection = function createConnection(options, callback) {
      const isOwn = !(this instanceof Agent) || this.createConnection !== createConnection || typeof callback !== 'function';
      if (isOwn || options.socketPath || isDirect(String(options.host).toLowerCase(), options.port))
        return connect.apply(this, arguments);
      tunnel(options.host, options.port, (error, socket) => {
        if (error) callback(error);
        else callback(null, isTls ? connect.call(this, Object.assign({}, options, { socket })) : socket);
      });
    };
  }
  // Every Agent creates its sockets by this method. The first one loads https, which takes longer than all of this.
  const createSocket = http.Agent.prototype.createSocket;
  http.Agent.prototype.createSocket = function () {
    http.Agent.prototype.createSocket = createSocket;
    patchAgent(http.Agent, false);
    patchAgent(require('https').Agent, true);
    return createSocket.apply(this, arguments);
  };

  // What undici calls for a connection of its Agent.
  function connectForFetch(options, callback) {
    const isTls = options.protocol === 'https:';
    const host = options.hostname;
    tunnel(host, Number(options.port || (isTls ? 443 : 80)), (error, socket) => {
      if (error || !isTls) return callback(error, socket);
      const servername = options.servername || (net.isIP(host) ? '' : host);
      const secure = require('tls').connect({ host, socket, servername, ALPNProtocols: ['http/1.1'] });
      secure.once('error', callback).once('secureConnect', () => {
        secure.removeListener('error', callback);
        callback(null, secure);
      });
    });
  }

  // undici, Node's or a package, reads this property when it is loaded and defines it if it is undefined. Its default Agent
  // is replaced there: loading undici for that takes long, and an Agent that the program sets later is the program's.
  const key = Symbol.for('undici.globalDispatcher.1');
  const define = Object.defineProperty;
  function onRead() {
    Object.defineProperty = (target, name, property) => {
      const isDefault = target === globalThis && name === key && property.value.constructor.name === 'Agent';
      if (isDefault) Object.defineProperty = define;
      return define(target, name, isDefault ? Object.assign({}, property, { value: agentFor(property.value) }) : property);
    };
    process.nextTick(() => (Object.defineProperty = define));
  }
  // Node 24 before 24.5 has defined it already.
  if (!globalThis[key]) define(globalThis, key, { configurable: true, get: onRead });

  function agentFor(direct) {
    const Agent = direct.constructor;
    return new (class extends Agent {
      dispatch(options, handler) {
        const { protocol, hostname, port } = new URL(options.origin);
        const usesProxy = !isDirect(hostname, port || (protocol === 'https:' ? '443' : '80'));
        return usesProxy ? super.dispatch(options, handler) : direct.dispatch(options, handler);
      }
    })({ connect: connectForFetch });
  }
}

function proxyUrl(text) {
  try {
    const url = new URL(text);
    return url.protocol === 'http:' ? url : undefined;
  } catch {
    return undefined;
  }
}
`;
