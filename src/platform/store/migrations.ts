// All migrations, in the order in which they run.
import type { Migration } from './migration.ts';
import { identity } from './migrations/0001-identity.ts';
import { audit } from './migrations/0002-audit.ts';
import { listeners } from './migrations/0003-listeners.ts';
import { sandboxRecords } from './migrations/0004-sandbox-records.ts';

export const migrations: readonly Migration[] = [identity, audit, listeners, sandboxRecords];
