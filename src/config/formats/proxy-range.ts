import { isIP } from 'node:net';

import { text, type About } from './value.ts';

/** Whoever is in the range may name the address of a client, so it must not be everybody. */
export const proxyRange = (about: About = {}) =>
  text({
    what: 'an IP address or a range such as 10.0.0.0/8',
    isValid: isRange,
    rule: (value) => (value.endsWith('/0') ? 'must not be every address: list only the proxies' : undefined),
    ...about,
  });

function isRange(value: string): boolean {
  const [, address = '', bits] = /^([\d.a-f:]+)(?:\/(0|[1-9]\d{0,2}))?$/i.exec(value) ?? [];
  const family = isIP(address);
  // A mapped range would be read as one of IPv4, with other bits.
  if (family === 6 && address.includes('.')) return false;
  return family !== 0 && (bits === undefined || Number(bits) <= (family === 4 ? 32 : 128));
}
