// The program inside a box: runs commands and reads files for the box host, over descriptor 3. It holds no secret, and ends
// when the channel does.
import { Socket } from 'node:net';
import { serveAgent } from './agent.ts';
import { connect } from './connect.ts';
import { execute } from './execute.ts';
import { read } from './files/read.ts';
import { write } from './files/write.ts';
import { hasOtherProcesses } from './process-list.ts';
import { glob } from './search/glob.ts';
import { grep } from './search/grep.ts';

const CHANNEL_DESCRIPTOR = 3;

const channel = new Socket({ fd: CHANNEL_DESCRIPTOR, readable: true, writable: true });
await serveAgent(channel, {
  methods: { execute, read, write, glob, grep, connect },
  // The parent is what set up the box, and the first process in it.
  hasOtherProcesses: () => hasOtherProcesses([process.pid, process.ppid]),
});
process.exit();
