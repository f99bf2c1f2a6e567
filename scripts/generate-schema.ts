// Writes config/proxy-config.schema.json from the schema that the parser uses. A test fails when the file is outdated.
import { writeFileSync } from 'node:fs';
import { proxyConfigJsonSchema } from '../src/policy/document/proxy-config.ts';

const file = new URL('../config/proxy-config.schema.json', import.meta.url);
writeFileSync(file, `${JSON.stringify(proxyConfigJsonSchema(), null, 2)}\n`);
