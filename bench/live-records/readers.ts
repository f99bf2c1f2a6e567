// Pages and readers of the API that follow the records, as browsers and `sallyport tail` do. Started with the address of the admin API, the
// file of its token, and how many of each; prints a line when all follow.
import { readFileSync } from 'node:fs';

const [address = '', tokenFile = '', pages = '0', tails = '0'] = process.argv.slice(2);
const token = readFileSync(tokenFile, 'utf8').trim();

async function followPage(cookie: string): Promise<void> {
  await drain(await fetch(`${address}/ui/stream?filter=`, { headers: { cookie } }));
}

async function drain(response: Response): Promise<void> {
  if (!response.ok || response.body === null)
    throw new Error(`the records are not followed: ${response.status}`);
  const reader = response.body.getReader();
  void (async () => {
    while (!(await reader.read()).done);
  })();
}

async function signIn(): Promise<string> {
  const form = await (await fetch(`${address}/ui`)).text();
  const [, formToken = ''] = /name="form_token" value="([^"]+)"/.exec(form) ?? [];
  const response = await fetch(`${address}/ui/sign-in`, {
    method: 'POST',
    headers: { origin: address, 'content-type': 'application/x-www-form-urlencoded' },
    body: String(new URLSearchParams({ form_token: formToken, token, next: '/ui' })),
    redirect: 'manual',
  });
  const [cookie = ''] = response.headers.getSetCookie();
  if (response.status !== 303) throw new Error(`the page refused the sign-in: ${response.status}`);
  return cookie.split(';')[0] ?? '';
}

const cookie = await signIn();
for (let n = 0; n < Number(pages); n += 1) await followPage(cookie);
for (let n = 0; n < Number(tails); n += 1)
  await drain(await fetch(`${address}/v1/records`, { headers: { authorization: `Bearer ${token}` } }));
console.log('following');
