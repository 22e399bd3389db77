export type Theme = 'light' | 'dark' | 'system';

const key = 'mpijob-theme';
const dark = window.matchMedia('(prefers-color-scheme: dark)');

/** Returns the theme that the user selected. */
export function selectedTheme(): Theme {
  const stored = localStorage.getItem(key);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

function apply(): void {
  const theme = selectedTheme();
  document.documentElement.classList.toggle('pf-v6-theme-dark', theme === 'dark' || (theme === 'system' && dark.matches));
}

/** Selects a theme and applies it. */
export function selectTheme(theme: Theme): void {
  localStorage.setItem(key, theme);
  apply();
}

/** Applies the theme, also when the system's changes. */
export function startTheme(): void {
  apply();
  dark.addEventListener('change', apply);
}
