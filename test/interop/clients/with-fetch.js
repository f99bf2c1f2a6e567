// Node's fetch: URL [FILE to POST]. Prints status and body as JSON.
import { readFile } from 'node:fs/promises';

const [url, file] = process.argv.slice(2);
const headers = { authorization: 'from-the-client' };
const init = file ? { method: 'POST', headers, body: await readFile(file) } : { headers };
const response = await fetch(url, init);
console.log(JSON.stringify({ status: response.status, text: await response.text() }));
