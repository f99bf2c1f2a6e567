// Every row of the corpus, by the stage that plays it. Each stage's own test plays its rows; this list serves the checks of
// the whole corpus: enough rows, no duplicates, every class covered.
import { lookupRows } from './address/rows-lookup.ts';
import { ownRows } from './address/rows-own.ts';
import { portRows } from './address/rows-port.ts';
import { rangeRows } from './address/rows-range.ts';
import { spellingRows } from './address/rows-spelling.ts';
import { callbackRows } from './callback/callback-rows.ts';
import { originRows } from './origin/origin-rows.ts';
import { headerRows } from './document/rows-header.ts';
import { hostRows } from './document/rows-host.ts';
import { jsonRows } from './document/rows-json.ts';
import { secretRows } from './document/rows-secret.ts';
import { typeRows } from './document/rows-type.ts';
import { workRows } from './document/rows-work.ts';
import { loadRows } from './load/load-rows.ts';
import { messageRows } from './message/message-rows.ts';
import { connectRows } from './connect/rows.ts';
import { abuseAdminRows } from './admin/rows-abuse.ts';
import { reachAdminRows } from './admin/rows-reach.ts';
import { tokenAdminRows } from './admin/rows-token.ts';
import { askingRows } from './scrub/rows-asking.ts';
import { echoRows } from './scrub/rows-echoes.ts';
import { trafficRows } from './leak/rows-traffic.ts';
import { stateRows } from './leak/rows-state.ts';
import { startRows } from './leak/rows-start.ts';
import { h2Rows } from './h2/h2-rows.ts';
import { diskRows } from './tls/rows-disk.ts';
import { allTlsRows } from './tls/tls-rows.ts';
import type { AttackRow } from './row.ts';

export type StageRows = {
  readonly stage: string;
  readonly rows: readonly AttackRow<unknown, unknown>[];
};

export const corpus: readonly StageRows[] = [
  { stage: 'scrub', rows: echoRows },
  { stage: 'scrub', rows: askingRows },
  { stage: 'address', rows: lookupRows },
  { stage: 'address', rows: ownRows },
  { stage: 'address', rows: portRows },
  { stage: 'address', rows: rangeRows },
  { stage: 'address', rows: spellingRows },
  { stage: 'origin', rows: originRows },
  { stage: 'callback', rows: callbackRows },
  { stage: 'document', rows: headerRows },
  { stage: 'document', rows: hostRows },
  { stage: 'document', rows: jsonRows },
  { stage: 'document', rows: secretRows },
  { stage: 'document', rows: typeRows },
  { stage: 'document', rows: workRows },
  { stage: 'message', rows: messageRows },
  { stage: 'connect', rows: connectRows },
  { stage: 'admin', rows: abuseAdminRows },
  { stage: 'admin', rows: reachAdminRows },
  { stage: 'admin', rows: tokenAdminRows },
  { stage: 'leak', rows: trafficRows },
  { stage: 'leak', rows: stateRows },
  { stage: 'h2', rows: h2Rows },
  { stage: 'tls', rows: allTlsRows },
  { stage: 'tls', rows: diskRows },
  { stage: 'leak', rows: startRows },
  { stage: 'load', rows: loadRows },
];
