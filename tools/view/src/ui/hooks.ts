import { useEffect, useReducer } from 'preact/hooks';
import type { State, Store } from '../state';

/** The state, and a new drawing of the component whenever what `pick` takes of it changes. */
export function useStore<T>(store: Store, pick: (state: State) => T): T {
  const [, again] = useReducer((n: number) => n + 1, 0);
  const value = pick(store.state);
  useEffect(() => {
    let last = pick(store.state);
    if (last !== value) again(0);
    return store.subscribe(() => {
      const next = pick(store.state);
      if (next === last) return;
      last = next;
      again(0);
    });
  }, [store]);
  return value;
}
