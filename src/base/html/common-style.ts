// The style that pages share: colors for dark and light, text, controls and tables. No inline styles and no images: the policy of the
// pages allows their own style alone.

const COLORS =
  ':root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--soft:#f4f6f8;--line:#d5d9de;--faint:#59636e;--link:#0b57c2;' +
  '--bad:#b3261e;--good:#1a7f4b;--busy:#8a5a00;--here:#dce9fb}' +
  '@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--paper:#14181d;--soft:#1e242b;--line:#39424c;--faint:#9aa5b1;' +
  '--link:#7fb4ff;--bad:#ff8a80;--good:#5fd39a;--busy:#f0b849;--here:#22364f}}';

const TEXT =
  '*{box-sizing:border-box}body{font:15px/1.5 system-ui,sans-serif;margin:0;color:var(--ink);background:var(--paper);overflow-wrap:anywhere}' +
  'a{color:var(--link)}a:focus-visible,input:focus-visible,select:focus-visible,button:focus-visible,summary:focus-visible,' +
  'pre:focus-visible{outline:2px solid var(--link);outline-offset:2px}' +
  'h1{font-size:1.25rem;margin:0}h2{font-size:1.1rem;margin:0 0 .5rem}' +
  'h3{font-size:.95rem;margin:1.25rem 0 .25rem}h3 small{font-weight:normal;margin-left:.5rem}code,pre,.mono,input[name=filter]{font:13px/1.5 ui-monospace,monospace}' +
  'pre{background:var(--soft);padding:.6rem .75rem;margin:0;overflow:auto;max-height:32rem;white-space:pre-wrap;' +
  'unicode-bidi:plaintext;border-radius:4px}' +
  '.faint,.cut,small{color:var(--faint)}.mark{font:11px/1 ui-monospace,monospace;border:1px solid var(--bad);color:var(--bad);' +
  'border-radius:3px;padding:0 .2em;white-space:nowrap}mark{background:none;color:var(--bad);border-bottom:2px solid var(--bad)}' +
  'dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1rem 1rem;margin:.5rem 0}dt{color:var(--faint)}dd{margin:0}' +
  '.error{color:var(--bad)}.success{color:var(--good)}.pending{color:var(--busy)}';

const LAYOUT =
  'header,main{padding:.75rem 1rem;max-width:1800px;margin:0 auto}header{display:flex;gap:.25rem 1rem;align-items:baseline;' +
  'flex-wrap:wrap;border-bottom:1px solid var(--line)}header nav{margin-left:auto}main{display:block}' +
  '.path{min-width:0}form{display:flex;gap:.5rem;flex-wrap:wrap;margin:0 0 .75rem}' +
  'input,select,button{font:inherit;color:inherit;background:var(--paper);border:1px solid var(--line);border-radius:4px;' +
  'padding:.35rem .6rem;min-height:2.25rem}input[name=filter],input[name=name]{flex:1 1 16rem;min-width:0}' +
  'button{background:var(--soft);cursor:pointer}[role=alert]{border-left:3px solid var(--bad);padding:.25rem .75rem;margin:0 0 .75rem}' +
  '[role=alert] p{margin:.15rem 0}.none{padding:2rem 0;color:var(--faint)}.more{margin:.75rem 0;display:flex;gap:1rem}';

const TABLE =
  'table{border-collapse:collapse;width:100%}th{font-weight:600;color:var(--faint);font-size:.85rem}' +
  'td,th{text-align:left;vertical-align:top;padding:.35rem .75rem .35rem 0;border-bottom:1px solid var(--line)}' +
  '.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}' +
  '.short{white-space:nowrap}.lead{min-width:12rem;max-width:28rem}.list{min-width:14rem;max-width:28rem}tbody tr:hover{background:var(--soft)}' +
  '.tag{display:inline-block;background:var(--soft);border-radius:3px;padding:0 .35rem;margin:0 .25rem .1rem 0;font-size:.85rem;' +
  'max-width:100%}' +
  '@media(max-width:1100px){.wide{display:none}}' +
  '@media(max-width:520px){input[name=filter]{flex-basis:100%}}' +
  '@media(max-width:700px){thead{display:none}tr{display:block;padding:.4rem 0;border-bottom:1px solid var(--line)}' +
  'td{display:inline-block;border:0;padding:0 .75rem 0 0}td.lead{display:block}td:empty{display:none}.number{text-align:left}' +
  'td[data-label]::before{content:attr(data-label) " ";color:var(--faint);font-size:.85rem}}';

/** A page adds what it has of its own. */
export const COMMON_STYLE: string = COLORS + TEXT + LAYOUT + TABLE;
