// Places of services for pure tests: by host, by path, and by path without TLS.
import {
  parseServicePlace,
  type ServicePlace,
} from '../../../../src/platform/sandboxes/services/service-address.ts';

export const BOX = '11111111-1111-4111-8111-111111111111';
export const OTHER = '22222222-2222-4222-8222-222222222222';

function place(url: string, box: string, port: number, domain?: string): ServicePlace {
  const host = domain === undefined ? 'gateway' : `${port}--${box}.${domain}`;
  const found = parseServicePlace({ gatewayUrl: url, domain }, { host, target: `/services/${box}/${port}/` });
  if (found === undefined || found === 'unknown') throw new Error('no place');
  return found;
}

export const byHost: ServicePlace = place('https://gw.example.com', BOX, 3000, 'boxes.example.com');
export const byPath: ServicePlace = place('https://gw.example.com', BOX, 3000);
export const byOtherPath: ServicePlace = place('https://gw.example.com', OTHER, 3000);
export const byPlainPath: ServicePlace = place('http://127.0.0.1:8081', BOX, 3000);
