// Writes the keys and defaults of docs/configuration.md. A test fails if the page is not current.
import { readFileSync, writeFileSync } from 'node:fs';
import { configurationReference } from './configuration-reference.ts';

const page = new URL('../docs/configuration.md', import.meta.url);
writeFileSync(page, configurationReference(readFileSync(page, 'utf8')));
