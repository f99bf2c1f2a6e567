import { describe, expect, it } from 'vitest';
import { workloadEnvironment } from '../../../src/workload/program/workload-environment.ts';

const proxy = {
  url: 'http://127.0.0.1:3128',
  bundle: '/etc/ca.pem',
  placeholders: { API_KEY: 'placeholder', TOKEN: 'one' },
};

describe('the variables of a workload', () => {
  it('are defaults, placeholders, its own, and those of the proxy, in this order', () => {
    const own = { TOKEN: 'own', HTTPS_PROXY: 'http://elsewhere', HOME: '/state' };
    const variables = workloadEnvironment({ own, temporary: '/tmp', memBytes: undefined, proxy });
    expect(variables).toMatchObject({
      ...{ API_KEY: 'placeholder', TOKEN: 'own', HOME: '/state', TMPDIR: '/tmp' },
      ...{
        HTTPS_PROXY: 'http://127.0.0.1:3128',
        https_proxy: 'http://127.0.0.1:3128',
        SSL_CERT_FILE: '/etc/ca.pem',
      },
    });
  });

  it('name no proxy without one', () => {
    const names = Object.keys(workloadEnvironment({ own: {}, temporary: '/tmp', memBytes: undefined }));
    expect(names.toSorted()).toEqual(['HOME', 'LANG', 'PATH', 'SHELL', 'TMPDIR']);
  });

  it('bound the heap of Node by the limit of memory, unless its owner does', () => {
    const memBytes = 512 * 1024 * 1024;
    const bounded = workloadEnvironment({ own: {}, temporary: '/tmp', memBytes });
    expect(bounded['NODE_OPTIONS']).toBe('--max-old-space-size=384');
    const own = { NODE_OPTIONS: '--max-old-space-size=100' };
    expect(workloadEnvironment({ own, temporary: '/tmp', memBytes })['NODE_OPTIONS']).toBe(own.NODE_OPTIONS);
  });
});
