// The agent server: assistants, threads and runs of the graphs of one deployment. `sallyport agent-server` serves it; the
// platform has its tables, so that either program may bring a database to this version.
import type { Module } from '../module.ts';

export const agentServer: Module = {
  name: 'agent-server',
  migrations: [
    new URL('./migrations/0021-agent-server.sql', import.meta.url),
    new URL('./migrations/0024-agent-server-queue.sql', import.meta.url),
  ],
};
