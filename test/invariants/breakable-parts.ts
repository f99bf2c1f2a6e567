// Parts of the proxy that a test makes fail. Its modules are mocked before anything is imported, so this file imports types
// only:
//
//   const { broken, breakable } = await vi.hoisted(async () => {
//     const { createBreakableParts } = await import('./breakable-parts.ts');
//     return createBreakableParts(() => 'text of the error');
//   });
//   vi.mock('../../src/policy/compile.ts', async (original) => breakable.compile(await original()));
//   beforeEach(() => broken.clear());
//   broken.add('decide');
import type * as Resolver from '../../src/callback/resolver.ts';
import type * as Compile from '../../src/policy/compile.ts';
import type * as Plan from '../../src/proxy/gate/request-plan.ts';
import type * as Outgoing from '../../src/proxy/h1/outgoing-head.ts';
import type * as Block from '../../src/proxy/h2/header-block.ts';
import type * as Mask from '../../src/proxy/mask/mask.ts';
import type * as LeafCache from '../../src/tls/leaf-cache.ts';

export type BreakablePart =
  | 'compile'
  | 'coverOf'
  | 'decide'
  | 'secretsFor'
  | 'resolve'
  | 'resolveLater'
  | 'plan'
  | 'list'
  | 'outgoing'
  | 'mask'
  | 'leaf';

/** `message` is asked for when a part fails: constants of the test do not exist earlier. */
export function createBreakableParts(message: () => string) {
  const broken = new Set<BreakablePart>();
  const failIf = (part: BreakablePart): void => {
    if (broken.has(part)) throw new TypeError(message());
  };
  return { broken, breakable: { ...breakableRules(failIf, broken), ...breakableMessages(failIf) } };
}

type FailIf = (part: BreakablePart) => void;

function breakableRules(failIf: FailIf, broken: ReadonlySet<BreakablePart>) {
  return {
    compile(actual: typeof Compile): typeof Compile {
      const breakable = (compiled: Compile.Compiled): Compile.Compiled => {
        failIf('compile');
        if (!compiled.ok) return compiled;
        const policy = compiled.value;
        const failing = (part: 'coverOf' | 'decide' | 'secretsFor') => ({
          [part]: (...asked: [never, never]) => {
            failIf(part);
            return policy[part](...asked);
          },
        });
        return {
          ...compiled,
          value: { ...policy, ...failing('coverOf'), ...failing('decide'), ...failing('secretsFor') },
        };
      };
      return {
        ...actual,
        compileProxyConfig: (...args) => breakable(actual.compileProxyConfig(...args)),
        *compileInSteps(...args) {
          return breakable(yield* actual.compileInSteps(...args));
        },
      };
    },
    resolver(actual: typeof Resolver): typeof Resolver {
      return {
        ...actual,
        createCallbackResolver(...args) {
          const resolver = actual.createCallbackResolver(...args);
          return {
            ...resolver,
            resolve(...asked) {
              failIf('resolve');
              return broken.has('resolveLater')
                ? Promise.reject(new Error('later'))
                : resolver.resolve(...asked);
            },
          };
        },
      };
    },
    leafCache(actual: typeof LeafCache): typeof LeafCache {
      return {
        ...actual,
        createLeafCache(...args) {
          const cache = actual.createLeafCache(...args);
          return {
            contextFor(subject) {
              failIf('leaf');
              return cache.contextFor(subject);
            },
            get size() {
              return cache.size;
            },
          };
        },
      };
    },
  };
}

function breakableMessages(failIf: FailIf) {
  return {
    plan(actual: typeof Plan): typeof Plan {
      return {
        ...actual,
        planRequest(...args) {
          failIf('plan');
          return actual.planRequest(...args);
        },
      };
    },
    /** Of HTTP/1.1. */
    outgoingHead(actual: typeof Outgoing): typeof Outgoing {
      return {
        ...actual,
        outgoingRequestHead(...args) {
          failIf('outgoing');
          return actual.outgoingRequestHead(...args);
        },
      };
    },
    /** Of HTTP/2. */
    headerBlock(actual: typeof Block): typeof Block {
      return {
        ...actual,
        parseRequestList(...args) {
          failIf('list');
          return actual.parseRequestList(...args);
        },
        outgoingRequestList(...args) {
          failIf('outgoing');
          return actual.outgoingRequestList(...args);
        },
      };
    },
    mask(actual: typeof Mask): typeof Mask {
      return {
        ...actual,
        maskResponseHead(...args) {
          failIf('mask');
          return actual.maskResponseHead(...args);
        },
      };
    },
  };
}
