// Programs of the command line, the public coding agents among them, and browsers.
import type { ClientRow } from '../client-row.ts';

const ECHO = 'https://api.test/echo';
const keys = {
  AWS_ACCESS_KEY_ID: 'placeholder',
  AWS_SECRET_ACCESS_KEY: 'placeholder',
  AWS_DEFAULT_REGION: 'us-east-1',
};

const transfers: readonly ClientRow[] = [
  {
    ...{ name: 'curl', client: 'curl', needs: ['curl'], version: 'curl --version', token: true },
    command: `set -e; for i in 1 2 3; do curl -sS --fail ${ECHO}; done; curl -sS --fail -d abc ${ECHO}; curl -sS --fail -N https://api.test/stream`,
    requests: 5,
  },
  {
    ...{ name: 'curl-http1', client: 'curl `--http1.1`: redirect, gzip, `Expect: 100-continue`' },
    ...{ needs: ['curl'], version: 'curl --version', requests: 4 },
    command: `set -e; curl -sSL --fail --http1.1 --compressed https://api.test/redirect https://api.test/gzip; head -c 2000000 /dev/zero | curl -sS --fail --http1.1 -H 'Expect: 100-continue' -T - ${ECHO}`,
  },
  {
    ...{ name: 'curl-parallel', client: 'curl `--parallel`, 200 requests', needs: ['curl'] },
    ...{ version: 'curl --version', requests: 200 },
    command: `curl -sS --fail --parallel --parallel-max 100 -o /dev/null '${ECHO}?[1-200]'`,
  },
  {
    ...{ name: 'openssl', client: 'openssl `s_client -proxy`', needs: ['openssl'], requests: 1 },
    version: 'openssl version',
    command: `printf 'GET /echo HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: close\\r\\n\\r\\n' | openssl s_client -quiet -verify_return_error -proxy "\${HTTPS_PROXY#http://}" -connect api.test:443 -servername api.test | grep '"method":"GET"'`,
  },
  {
    ...{ name: 'wget', client: 'wget', needs: ['wget'], version: 'wget --version', requests: 3 },
    command: `for i in 1 2 3; do wget -q -O - ${ECHO} || exit 1; done`,
  },
  {
    ...{ name: 'aria2', client: 'aria2', needs: ['aria2'], version: 'aria2c --version', requests: 1 },
    command: `aria2c -q --max-tries=1 -o out ${ECHO}`,
    cure: {
      text: '`--ca-certificate=$SSL_CERT_FILE`',
      command: `aria2c -q --max-tries=1 --ca-certificate="$SSL_CERT_FILE" -o out ${ECHO}`,
    },
  },
  {
    ...{ name: 'lynx', client: 'lynx', needs: ['lynx'], version: 'lynx -version' },
    command: `lynx -source ${ECHO} | grep '"method":"GET"'`,
  },
  {
    ...{ name: 'w3m', client: 'w3m', needs: ['w3m'], version: 'w3m -version' },
    command: `w3m -dump_source ${ECHO} | grep '"method":"GET"'`,
  },
  {
    ...{ name: 'httpie', client: 'HTTPie', needs: ['httpie'], requests: 2 },
    version: '{httpie}/bin/http --version',
    command: `set -e; {httpie}/bin/http --ignore-stdin --check-status ${ECHO}; {httpie}/bin/http --ignore-stdin --check-status ${ECHO} a=b`,
  },
].map((row) => ({ ...row, group: 'program' }) as ClientRow);

const S3CMD = '--access_key=placeholder --secret_key=placeholder --host=s3.test --host-bucket=s3.test';
const RCLONE =
  'set -e; echo text > file; S3=":s3,provider=Other,access_key_id=placeholder,secret_access_key=placeholder,endpoint=\'https://s3.test\':"; rclone --config "" lsd "$S3"; rclone --config "" rcat "${S3}bucket/copied" < file';

const services: readonly ClientRow[] = [
  {
    ...{ name: 'git', client: 'git clone, push', needs: ['git'], version: 'git --version', token: true },
    settings: { GIT_TERMINAL_PROMPT: '0' },
    command:
      'set -e; git clone -q https://git.test/repository.git work; cd work; head -c 3000000 /dev/urandom > data; git add data; git -c user.name=a -c user.email=a@example.test commit -qm data; git push -q origin "HEAD:refs/heads/branch-$(date +%s%N)"',
  },
  {
    ...{ name: 'gh', client: 'gh', needs: ['gh'], version: 'gh --version', requests: 1, token: true },
    command: 'gh api user --hostname github.test',
  },
  {
    ...{ name: 'aws-cli', client: 'AWS CLI, S3', needs: ['aws-cli'], requests: 3, settings: keys },
    version: '{aws-cli}/bin/aws --version',
    token: true,
    command:
      'set -e; echo text > file; aws() { {aws-cli}/bin/aws --endpoint-url https://s3.test "$@"; }; aws s3 ls; aws s3 cp file s3://bucket/file; aws s3 ls s3://bucket',
  },
  {
    ...{ name: 'gcloud', client: 'gcloud storage', needs: ['gcloud'], version: 'gcloud --version' },
    settings: {
      CLOUDSDK_CONFIG: '{scratch}/gcloud',
      CLOUDSDK_AUTH_ACCESS_TOKEN_FILE: '{scratch}/token',
      CLOUDSDK_CORE_PROJECT: 'project',
      CLOUDSDK_CORE_DISABLE_PROMPTS: '1',
      CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE: 'https://api.test/storage/v1/',
    },
    command: 'echo placeholder > token; gcloud storage buckets list',
  },
  {
    ...{ name: 's3cmd', client: 's3cmd', needs: ['s3cmd'], version: 's3cmd --version', requests: 1 },
    command: `s3cmd ${S3CMD} ls`,
    cure: {
      text: '`--ca-certs $SSL_CERT_FILE`, and `proxy_host` and `proxy_port` in its configuration file',
      command: `proxy="\${HTTPS_PROXY#http://}"; printf '[default]\\nproxy_host = %s\\nproxy_port = %s\\n' "\${proxy%:*}" "\${proxy##*:}" > config; s3cmd --config config --ca-certs "$SSL_CERT_FILE" ${S3CMD} ls`,
    },
  },
  {
    ...{ name: 'rclone', client: 'rclone, S3', needs: ['rclone'], version: 'rclone version' },
    command: RCLONE,
    cure: {
      text: '`env -u AWS_CA_BUNDLE rclone ...`: its version of the AWS SDK fails with that variable',
      command: `unset AWS_CA_BUNDLE; ${RCLONE}`,
    },
  },
  {
    ...{ name: 'restic', client: 'restic, S3', needs: ['restic'], version: 'restic version' },
    settings: { ...keys, RESTIC_PASSWORD: 'placeholder' },
    command: 'restic -r s3:https://s3.test/bucket/restic init',
  },
  {
    ...{ name: 'kubectl', client: 'kubectl', needs: ['kubectl'], version: 'kubectl version --client' },
    command: 'kubectl --server https://api.test --token placeholder get --raw /echo',
  },
  {
    ...{ name: 'apt', client: 'apt-get update, download', needs: ['apt'], version: 'apt-get --version' },
    command:
      'set -e; chmod 755 . ..; mkdir -p lists/partial cache/archives/partial etc; chown -R _apt lists cache; echo "deb [trusted=yes] https://apt.test/ ./" > etc/list; apt() { apt-get -o Dir::State::lists={scratch}/lists -o Dir::Cache={scratch}/cache -o Dir::Etc::sourcelist={scratch}/etc/list -o Dir::Etc::sourceparts=/dev/null -o Acquire::Retries=0 "$@"; }; apt -qq -o APT::Update::Error-Mode=any update; cd cache; apt download -qq small-package; ls *.deb',
  },
].map((row) => ({ ...row, group: 'program' }) as ClientRow);

const agents: readonly ClientRow[] = [
  {
    ...{ name: 'claude-code', client: 'Claude Code', needs: ['claude-code'] },
    version: '{claude-code}/node_modules/@anthropic-ai/claude-code-linux-x64/claude --version',
    settings: {
      ANTHROPIC_BASE_URL: 'https://api.test',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      IS_SANDBOX: '1',
    },
    command:
      'echo hello | {claude-code}/node_modules/@anthropic-ai/claude-code-linux-x64/claude -p "say hello" --model claude-sonnet-4-5 | grep four',
  },
  {
    ...{ name: 'codex', client: 'Codex CLI', needs: ['codex'] },
    version: '{node} {codex}/node_modules/@openai/codex/bin/codex.js --version',
    command:
      '{node} {codex}/node_modules/@openai/codex/bin/codex.js exec --skip-git-repo-check -c \'model_providers.h={name="h",base_url="https://api.test/v1",env_key="OPENAI_API_KEY",wire_api="responses"}\' -c model_provider=h -m model "say hello" < /dev/null | grep four',
  },
  {
    ...{ name: 'gemini-cli', client: 'Gemini CLI', needs: ['gemini-cli'], deadlineSeconds: 60 },
    version: '{node} {gemini-cli}/node_modules/.bin/gemini --version',
    settings: { GOOGLE_GEMINI_BASE_URL: 'https://api.test', GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    command:
      'mkdir -p ~/.gemini; echo \'{"security":{"auth":{"selectedType":"gemini-api-key"}}}\' > ~/.gemini/settings.json; {node} {gemini-cli}/node_modules/.bin/gemini -p "say hello" -m gemini-2.5-flash < /dev/null | grep four',
  },
].map((row) => ({ deadlineSeconds: 45, ...row, group: 'program' }) as ClientRow);

const NSS =
  'mkdir -p ~/.pki/nssdb; certutil -N -d sql:$HOME/.pki/nssdb --empty-password; certutil -A -d sql:$HOME/.pki/nssdb -t C,, -n sallyport -i "$NODE_EXTRA_CA_CERTS";';
const NSS_TEXT = '`certutil -A -d sql:$HOME/.pki/nssdb -t C,, -n sallyport -i $NODE_EXTRA_CA_CERTS`';
const CHROMIUM =
  'chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --user-data-dir=$PWD/profile --dump-dom https://api.test/page | grep "^spread"';
const PLAYWRIGHT = '{node} {programs}/javascript.mjs playwright {js}';

const browsers: readonly ClientRow[] = [
  {
    ...{ name: 'chromium', client: 'Chromium: fetch, a stream and a WebSocket', requests: 6 },
    ...{ needs: ['chromium', 'certutil'], version: 'chromium --version', streams: true },
    command: CHROMIUM,
    cure: { text: NSS_TEXT, command: `${NSS} ${CHROMIUM}` },
  },
  {
    ...{ name: 'playwright', client: 'playwright-core with Chromium', requests: 6 },
    ...{ needs: ['chromium', 'certutil', 'js'], streams: true },
    version: `{node} -p "JSON.parse(fs.readFileSync('{js}/node_modules/playwright-core/package.json')).version"`,
    command: PLAYWRIGHT,
    cure: { text: NSS_TEXT, command: `${NSS} ${PLAYWRIGHT}` },
  },
].map((row) => ({ ...row, group: 'browser', deadlineSeconds: 45 }) as ClientRow);

export const programRows: readonly ClientRow[] = [...transfers, ...services, ...agents, ...browsers];
