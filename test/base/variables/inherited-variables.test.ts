import { expect, it } from 'vitest';
import { inheritedVariables } from '../../../src/base/variables/inherited-variables.ts';

it('the variables of the machine are passed on, and no others', () => {
  const own = {
    PATH: '/bin',
    SSL_CERT_FILE: '',
    HTTPS_PROXY: 'x',
    SALLYPORT_API_KEY: 'x',
    NODE_OPTIONS: 'x',
  };
  expect(inheritedVariables(own)).toEqual({ PATH: '/bin', SSL_CERT_FILE: '' });
});
