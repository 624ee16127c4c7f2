// Title, figures, search, buttons.
import { useEffect, useRef, useState } from 'preact/hooks';
import { queryHelp } from '../data/query';
import { count, duration, plural } from '../format';
import type { Store, ThemeChoice } from '../state';
import { useStore } from './hooks';

const nextTheme: Record<ThemeChoice, ThemeChoice> = { auto: 'light', light: 'dark', dark: 'auto' };

function Search({ store }: { store: Store }) {
  const query = useStore(store, (s) => s.query);
  const error = useStore(store, (s) => s.queryError);
  const matches = useStore(store, (s) => s.matches);
  const [text, setText] = useState(query);
  const [focused, setFocused] = useState(false);
  const timer = useRef(0);
  useEffect(() => setText(query), [query]);
  const type = (value: string) => {
    setText(value);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => store.search(value.trim()), 200);
  };
  return (
    <div class="search">
      <input
        id="search" type="search" spellcheck={false} autocomplete="off"
        placeholder="Search: function, goroutine, late>100us …   ( / )"
        aria-label="Search" value={text}
        onInput={(e) => type(e.currentTarget.value)}
        onFocus={() => setFocused(true)} onBlur={() => setFocused(false)}
        onKeyDown={(e) => {
          if (e.key === 'Enter') {
            window.clearTimeout(timer.current);
            store.search(text.trim());
          } else if (e.key === 'Escape') {
            e.currentTarget.blur();
          }
          e.stopPropagation();
        }}
      />
      {query && !error && <span class="found">{plural(matches, 'slice')}</span>}
      {error && <span class="found error">{error}</span>}
      {focused && !text && (
        <dl class="hints">
          {queryHelp.map(([word, meaning]) => [<dt key={word}>{word}</dt>, <dd>{meaning}</dd>])}
        </dl>
      )}
    </div>
  );
}

export function Header({ store }: { store: Store }) {
  const { trace } = store;
  const threads = useStore(store, (s) => s.threads);
  const theme = useStore(store, (s) => s.theme);
  return (
    <header>
      <h1 title={trace.title}>{trace.title}</h1>
      <p class="figures" title={`${trace.format}, ${plural(trace.records, "of Gofer's records", "of Gofer's records")}`}>
        {duration(trace.span)} · {count(trace.events)} events · {plural(trace.goroutines.count, 'goroutine')} ·{' '}
        {plural(trace.procs.length, 'P')}
      </p>
      <Search store={store} />
      <div class="buttons">
        <button title="Lanes of the Ms, the threads (m)" aria-pressed={threads} onClick={() => store.set({ threads: !threads })}>
          Threads
        </button>
        <button title="Colours: as the system has them, light, or dark (t)" onClick={() => store.set({ theme: nextTheme[theme] })}>
          {theme === 'auto' ? 'Auto' : theme === 'light' ? 'Light' : 'Dark'}
        </button>
        <button title="What the colours and marks mean (l)" onClick={() => store.set({ overlay: 'legend' })}>
          Legend
        </button>
        <button title="Keys (?)" onClick={() => store.set({ overlay: 'help' })}>
          ?
        </button>
      </div>
    </header>
  );
}
