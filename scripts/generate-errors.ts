// Writes docs/errors.md. A test fails if the file is not current.
import { writeFileSync } from 'node:fs';
import { errorReference } from './error-reference.ts';

writeFileSync(new URL('../docs/errors.md', import.meta.url), errorReference());
