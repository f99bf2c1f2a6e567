import { describe, expect, it } from 'vitest';
import { boxEnvironment } from '../../../src/box-host/bubblewrap/environment.ts';
import { caBundlePath } from '../../../src/box-host/bubblewrap/etc-files.ts';
import { bundleVariables } from '../../../src/tls/trust-variables.ts';

describe('the environment of a box', () => {
  it('leads clients to the proxy and to the CA bundle', () => {
    const environment = boxEnvironment({ placeholders: {}, own: {} });
    for (const name of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'ALL_PROXY'])
      expect(environment[name]).toBe('http://127.0.0.1:3128');
    for (const name of [...bundleVariables, 'NODE_EXTRA_CA_CERTS'])
      expect(environment[name]).toBe(caBundlePath);
  });

  it('contains nothing of the host', () => {
    process.env['SALLYPORT_TEST_ONLY'] = 'of the host';
    try {
      const values = Object.values(boxEnvironment({ placeholders: {}, own: {} }));
      expect(values).not.toContain('of the host');
      expect(values).not.toContain(process.env['PATH']);
    } finally {
      delete process.env['SALLYPORT_TEST_ONLY'];
    }
  });

  it('has the placeholders of the rules and the variables of the box, which win', () => {
    const environment = boxEnvironment({
      placeholders: { API_KEY: 'placeholder', OTHER: 'rule' },
      own: { OTHER: 'box', HOME: '/work' },
    });
    expect(environment).toMatchObject({ API_KEY: 'placeholder', OTHER: 'box', HOME: '/work' });
  });

  it('keeps the proxy: past it there is no network', () => {
    const own = { HTTPS_PROXY: 'http://elsewhere.test', NO_PROXY: '*' };
    expect(boxEnvironment({ placeholders: own, own })).toMatchObject({
      HTTPS_PROXY: 'http://127.0.0.1:3128',
      NO_PROXY: 'localhost,127.0.0.1,::1',
    });
  });
});
