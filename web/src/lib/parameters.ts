import {useSearchParams} from 'react-router';

/** Values of parameters of the URL by their names; an empty one removes the parameter. */
export type Values = Record<string, string>;

interface Parameters {
  params: URLSearchParams;
  /** Changes parameters as a step of the browser's history. */
  open: (values: Values) => void;
  /** Changes parameters in place, as filters do. */
  refine: (values: Values) => void;
}

/** Returns the parameters of the page's URL and how to change some of them. */
export function useParameters(): Parameters {
  const [params, setParams] = useSearchParams();
  const change = (values: Values, replace: boolean): void =>
    setParams(
      (current) => {
        const next = new URLSearchParams(current);
        for (const [name, value] of Object.entries(values)) {
          if (value) next.set(name, value);
          else next.delete(name);
        }
        return next;
      },
      {replace},
    );
  return {params, open: (values) => change(values, false), refine: (values) => change(values, true)};
}
