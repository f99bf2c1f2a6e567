// Ways to let a sandbox reach a destination that it must not reach.
import { type Mutation, bothVersions } from './mutation.ts';

export const reach: readonly Mutation[] = [
  {
    invariant: 'I8',
    name: 'the admin API is not among the own listeners',
    versions: bothVersions,
    file: 'src/sidecar/egress.ts',
    text: 'if (this.admin && isAt(this.admin)) return true;',
    replacement: '',
    breaks: 'a sandbox reaches the API that changes its rules',
  },
  {
    invariant: 'I8',
    name: 'a listener that was opened later is not among the own listeners',
    versions: bothVersions,
    file: 'src/sidecar/sandboxes/sandboxes.ts',
    text: 'listeners.add(entry.listener);',
    replacement: '',
    breaks: 'a sandbox uses the listener of another sandbox',
  },
  {
    invariant: 'I8',
    name: 'an IPv4-mapped IPv6 address is not unmapped',
    versions: bothVersions,
    file: 'src/sidecar/egress.ts',
    text: 'return [address, ...embeddedV4(address)].some((spelling) => isBoundTo(bound, spelling));',
    replacement: 'return isBoundTo(bound, address);',
    breaks: 'the kernel unmaps ::ffff:127.0.0.1, and the check does not',
  },
  {
    invariant: 'I8',
    name: 'a wildcard listener counts as 127.0.0.1 only',
    versions: bothVersions,
    file: 'src/sidecar/egress.ts',
    text: "if (classifyAddress(address) === 'loopback') return true;\n  return isLocalAddress(address);",
    replacement: "return address.text === '127.0.0.1';",
    breaks: '127.0.0.2 reaches a listener on 0.0.0.0',
  },
  {
    invariant: 'I8',
    name: 'a callback may call the own listeners',
    file: 'src/sidecar/egress.ts',
    text: "if (egress.isOwnListener(address, port)) return 'own listener';",
    replacement: '',
    breaks: 'an author of rules reaches the admin API from inside',
  },
  {
    invariant: 'I8',
    name: 'only the first address of a lookup is checked',
    versions: bothVersions,
    file: 'src/proxy/upstream/dial.ts',
    text: 'for (const { address } of found) {',
    replacement: 'for (const { address } of found.slice(0, 1)) {',
    breaks: 'a name with a public and a forbidden address reaches the forbidden one',
  },
  {
    invariant: 'I8',
    name: 'an attempt goes to another address than the judged one',
    file: 'src/proxy/upstream/dial.ts',
    text: 'else process.nextTick(callback, null, address, family);',
    replacement: "else process.nextTick(callback, null, '127.0.0.1', 4);",
    breaks: 'what was judged is not what is dialled',
  },
  {
    invariant: 'I8',
    name: 'a race dials an address twice',
    file: 'src/base/connect-race.ts',
    text: 'order.push(...first.slice(i, i + 1),',
    replacement: 'order.push(...first.slice(0, i + 1),',
    breaks: 'one request opens more connections than its host has judged addresses',
  },
  {
    invariant: 'I8',
    name: 'allow_private opens link-local addresses',
    versions: bothVersions,
    file: 'src/base/address-guard.ts',
    text: "return deny('address_denied', found);",
    replacement: "return isListed(address, rules) ? undefined : deny('address_denied', found);",
    breaks: 'allow_private: all discloses the credentials of the machine',
  },
  {
    invariant: 'I8',
    name: 'loopback stays reachable beside an exposed listener',
    file: 'src/sidecar/egress.ts',
    text: 'isLoopbackListen(config.listen) && !own.isExposed',
    replacement: 'isLoopbackListen(config.listen)',
    breaks: 'remote clients reach services on loopback',
  },
  {
    invariant: 'I8',
    name: 'the admin API does not require a token',
    file: 'src/admin/request-pipeline.ts',
    text: 'if (!isTrusted && !match.isOpen) return tokenRequired;',
    replacement: '',
    breaks: 'any process on the same loopback changes rules',
  },
  {
    invariant: 'I8',
    name: 'any Host is accepted by the admin API',
    file: 'src/admin/access-guard.ts',
    text: 'return LOOPBACK.test(name) || hosts.has(name) || hosts.has(host);',
    replacement: "return name !== '';",
    breaks: 'a web page reads the API by DNS rebinding',
  },
  {
    invariant: 'I8',
    name: 'a tunnel to the reserved host is opened',
    file: 'src/proxy/tunnel/connect.ts',
    text: "if (authority.host === context.reserved.name) return connection.refuse(refuse('reserved_host'), details);",
    replacement: '',
    breaks: 'a server that DNS names is taken for the proxy',
  },
  {
    invariant: 'I8',
    name: 'access_control is asked before the reserved host is recognised',
    file: 'src/proxy/tunnel/connect.ts',
    text:
      "if (authority.host === context.reserved.name) return connection.refuse(refuse('reserved_host'), details);\n" +
      '  const policy = context.policy();\n' +
      '  const cover = policy.coverOf(authority);\n' +
      "  if (cover.kind === 'refuse') return connection.refuse(refuse(cover.reason, cover.detail), details);",
    replacement:
      'const policy = context.policy();\n' +
      '  const cover = policy.coverOf(authority);\n' +
      "  if (cover.kind === 'refuse') return connection.refuse(refuse(cover.reason, cover.detail), details);\n" +
      "  if (authority.host === context.reserved.name) return connection.refuse(refuse('reserved_host'), details);",
    breaks: 'a rule of the tenant decides about the name of the proxy',
  },
  {
    invariant: 'I8',
    name: 'a request to the reserved host is forwarded',
    file: 'src/proxy/h1/exchange.ts',
    text: 'if (!tunnel && plan.target.authority.host === context.reserved.name)\n    return respondAsReservedHost(connection, plan, rest);',
    replacement: '',
    breaks: 'a server that DNS names serves the CA that clients trust',
  },
];
