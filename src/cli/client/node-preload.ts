// A module that Node loads before a program (NODE_OPTIONS). NODE_USE_ENV_PROXY reaches the global agents only; libraries
// that make an Agent of their own (AWS SDK, stripe, superagent) would bypass the proxy without a warning.
import { ownPreload } from '../process/runtime-switches.ts';
import { oldNodePreload } from './old-node-preload.ts';

/**
 * CommonJS, because `--import` would load the program's first file by other rules. Leaves alone an Agent with a setting
 * of its own, and a class that makes its connections itself: it may have a proxy of its own. Older versions of Node do
 * not know the option `proxyEnv`: see old-node-preload.ts. Syntax of Node 12, which parses this file and then does
 * nothing. Its digest is in runtime-switches.ts.
 */
export const agentPreload = `// Written by Sallyport: clients of Node that make an Agent of their own get the proxy of the environment.
'use strict';
const [major, minor] = process.versions.node.split('.').map(Number);
const readsVariables = major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21);
// Sallyport itself connects to proxies and upstreams, never through a proxy.
const isSallyport = /[\\\\/]sallyport(?:\\.js)?$/.test(process.argv[1] || '');
if (process.env.NODE_USE_ENV_PROXY === '1' && !isSallyport) {
  if (readsVariables) giveProxyToAgents();
  else if (major >= 18) connectThroughProxy();
}

function giveProxyToAgents() {
  for (const module of [require('http'), require('https')]) {
    const { Agent } = module;
    const methods = ['addRequest', 'createConnection', 'createSocket'];
    const own = methods.map((name) => Agent.prototype[name]);
    const connectsItself = (agent) => methods.some((name, i) => agent[name] !== own[i]);
    const withProxy = (options) => ({ proxyEnv: process.env, ...options });
    module.Agent = new Proxy(Agent, {
      construct: (_, [options, ...rest], made) =>
        Reflect.construct(Agent, [connectsItself(made.prototype) ? options : withProxy(options), ...rest], made),
      apply: (_, self, [options, ...rest]) =>
        Reflect.apply(Agent, self, [self instanceof Agent && connectsItself(self) ? options : withProxy(options), ...rest]),
    });
    Agent.prototype.constructor = module.Agent;
  }
  require('module').syncBuiltinESMExports();
}

${oldNodePreload}`;

/** NODE_OPTIONS with the preload behind what was there, except a preload that Sallyport added before. */
export function withPreload(before: string | undefined, file: string): string {
  const kept = (before ?? '').replaceAll(ownPreload, '').trim();
  return `${kept} --require=${file}`.trimStart();
}

/** Whether NODE_OPTIONS has a preload that Sallyport added. */
export function hasPreload(options: string | undefined): boolean {
  return (options ?? '').search(ownPreload) !== -1;
}
