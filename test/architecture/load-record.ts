// Preloaded into a spawned sidecar (`node --import`): appends the address of every module that it really loads,
// by import or by require, to the file that SALLYPORT_LOADED names.
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const file = process.env['SALLYPORT_LOADED'];
if (file === undefined) throw new Error('SALLYPORT_LOADED must name a file');

registerHooks({
  load(url, context, next) {
    appendFileSync(file, `${url}\n`);
    return next(url, context);
  },
});
