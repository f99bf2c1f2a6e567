// `sallyport box-host`: internal, started by the platform. Runs the boxes of one machine until no platform has been connected
// for a minute. SIGTERM and SIGINT end it with all boxes.
import { join } from 'node:path';
import { InputError } from '../../base/input-error.ts';
import { createFdSink, createLog } from '../../base/log.ts';
import { isObject } from '../../base/json/json-document.ts';
import { inheritedVariables } from '../../base/variables/inherited-variables.ts';
import { parsePortRange } from '../../box-host/attached-engine.ts';
import { createBoxHost } from '../../box-host/box-host.ts';
import { chooseEngine, runtimes } from '../../box-host/engine-choice.ts';
import { parseCommandLine } from '../command/declaration.ts';
import { boxHostCommand } from '../command/platform-commands.ts';
import { readDocument } from '../document.ts';
import { packageRoot } from '../package-root.ts';
import { preventCoreDumps } from '../process/core-dumps.ts';
import { refuseRuntimeSwitches } from '../process/runtime-switches.ts';

/** Exit code 0 after a signal or without a platform, 2 for what must be corrected. */
export async function run(args: string[]): Promise<number> {
  refuseRuntimeSwitches(process.env);
  const { values } = parseCommandLine(boxHostCommand, args);
  const { directory, 'attached-listen': listen = '127.0.0.1:0', 'sidecar-config': configFile } = values;
  if (directory === undefined) throw new InputError('--directory is required');
  const attachedListen = parsePortRange(listen);
  const runtime = runtimes.find((one) => one === (values.runtime ?? 'attached'));
  if (runtime === undefined) throw new InputError(`--runtime must be ${runtimes.join(', ')}`);
  if (typeof attachedListen === 'string') throw new InputError(`--attached-listen ${attachedListen}`);
  const config = configFile === undefined ? {} : await readDocument(configFile);
  if (!isObject(config)) throw new InputError(`${configFile}: must be a JSON object`);
  preventCoreDumps();
  // Before anything runs: a signal must end the sidecars too.
  const { promise: signalled, resolve } = Promise.withResolvers<void>();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
  const sink = createFdSink(1);
  const log = createLog('info', sink);
  const host = await createBoxHost({
    directory,
    attachedListen,
    log,
    configured: runtime,
    createEngine: (given) => chooseEngine({ ...given, runtime, directory, log }),
    program: {
      command: [process.execPath, join(packageRoot, 'bin', 'sallyport.js')],
      config,
      env: inheritedVariables(),
    },
  });
  log.info({ socket: host.socketPath, pid: process.pid }, 'ready');
  sink.flush();
  await Promise.race([signalled, host.abandoned]);
  await host.close();
  await sink.close();
  return 0;
}
