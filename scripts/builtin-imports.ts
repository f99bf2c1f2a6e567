// A plugin of esbuild for imports of Node's own modules. A native import reads every export of the module, also those that
// load more when they are read: node:http loads all of undici for its WebSocket, node:fs its promises, node:crypto its Web
// Crypto. The bundle takes only the exports that it names.
import { isBuiltin } from 'node:module';
import type { Plugin } from 'esbuild';

export const builtinImports: Plugin = {
  name: 'builtin-imports',
  setup(build) {
    build.onResolve({ filter: /./ }, ({ path, kind }) =>
      kind === 'import-statement' && isBuiltin(path)
        ? { path, namespace: 'builtin', sideEffects: false }
        : undefined,
    );
    build.onLoad({ filter: /./, namespace: 'builtin' }, ({ path }) => ({ contents: moduleText(path) }));
  },
};

/** A call that is marked as pure is left out where nothing uses its result. */
function moduleText(path: string): string {
  const names = Object.getOwnPropertyNames(process.getBuiltinModule(path)).filter(
    (name) => /^[A-Za-z_$][\w$]*$/.test(name) && name !== 'default',
  );
  return `
const builtin = process.getBuiltinModule(${JSON.stringify(path)});
const exportOf = (name) => builtin[name];
export default builtin;
${names.map((name) => `export const ${name} = /* @__PURE__ */ exportOf('${name}');`).join('\n')}
`;
}
