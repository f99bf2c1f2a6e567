// The generated JavaScript client, `new Client().sandboxes.boxes`: the control API, with its own retries.
import { Client } from 'langsmith';
import { endpoint, errorOf, key, report, viewerKey } from './steps.mjs';

const { sandboxes } = new Client({ apiUrl: endpoint, apiKey: key });
const { boxes } = sandboxes;
const name = 'generated';

async function untilReady(box) {
  for (;;) {
    const { status } = await boxes.getStatus(box);
    if (status !== 'provisioning') return status;
  }
}

const created = await boxes.create({ name, labels: { a: 'b' }, env_vars: { MODE: 'interop' } });
report('create', [created.name, typeof created.id, created.labels]);
report('wait', await untilReady(name));
const names = [];
for await (const box of boxes.list({ page_size: 1 })) names.push(box.name);
report('list', names);
report('get', (await boxes.retrieve(name)).id === created.id);
const updated = await boxes.update(name, { idle_ttl_seconds: 600 });
report('update', updated.idle_ttl_seconds);
await boxes.stop(name);
report('stop', (await boxes.getStatus(name)).status);
await boxes.start(name);
report('start', await untilReady(name));
const url = await boxes.generateServiceURL(name, { port: 8000 });
report('service', [typeof url.token, typeof url.service_url, typeof url.browser_url]);
report('404', await errorOf(() => boxes.retrieve('none')));
report('409', await errorOf(() => boxes.create({ name })));
report('422', await errorOf(() => boxes.update(name, { idle_ttl_seconds: 1 })));
const viewer = new Client({ apiUrl: endpoint, apiKey: viewerKey }).sandboxes.boxes;
report('403', await errorOf(() => viewer.delete(name)));
const wrong = new Client({ apiUrl: endpoint, apiKey: 'wrong' }).sandboxes.boxes;
report('401', await errorOf(() => wrong.retrieve(name)));
await boxes.delete(name);
report('delete', await errorOf(() => boxes.retrieve(name)));
process.exit();
