// The whole page: header, overview, timeline, panel.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { makeTheme, type Theme } from '../draw/palette';
import type { Timeline } from '../draw/timeline';
import type { Store, ThemeChoice } from '../state';
import { Header } from './header';
import { useStore } from './hooks';
import { Overlay } from './overlay';
import { Panel } from './panel';
import { Stage } from './stage';

function useTheme(choice: ThemeChoice): Theme {
  const media = useMemo(() => window.matchMedia('(prefers-color-scheme: dark)'), []);
  const [systemDark, setSystemDark] = useState(media.matches);
  useEffect(() => {
    const listen = () => setSystemDark(media.matches);
    media.addEventListener('change', listen);
    return () => media.removeEventListener('change', listen);
  }, [media]);
  const dark = choice === 'auto' ? systemDark : choice === 'dark';
  const theme = useMemo(() => makeTheme(dark), [dark]);
  useEffect(() => {
    document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
  }, [dark]);
  return theme;
}

export function App({ store }: { store: Store }) {
  const theme = useTheme(useStore(store, (s) => s.theme));
  const [timeline, setTimeline] = useState<Timeline | null>(null);
  const damage = store.trace.damage;
  return (
    <div class="app">
      <Header store={store} />
      {damage && <p class="damage">The trace is damaged; this is what comes before: {damage}</p>}
      <Stage store={store} theme={theme} onTimeline={setTimeline} />
      {timeline && <Panel store={store} theme={theme} timeline={timeline} />}
      <Overlay store={store} theme={theme} />
    </div>
  );
}
