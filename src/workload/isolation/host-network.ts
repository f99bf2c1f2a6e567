// The network of a workload that has no namespace of its own: its sandbox listens on this machine, and a token keeps others out.
import type { NetworkPlace } from './isolation.ts';

export function openHostNetwork(): NetworkPlace {
  return {
    namespaces: undefined,
    openListen: async () => ({ host: '127.0.0.1', port: 0, needsToken: true }),
    openPort: undefined,
    proxyUrl(url, token) {
      const proxy = new URL(url);
      proxy.username = 'workload';
      proxy.password = token;
      return proxy.href.replace(/\/$/, '');
    },
    close: () => undefined,
  };
}
