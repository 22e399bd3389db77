import a11y from 'eslint-plugin-jsx-a11y';
import hooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  {ignores: ['dist', 'node_modules']},
  {
    files: ['src/**/*.{ts,tsx}'],
    extends: [...tseslint.configs.strictTypeChecked, a11y.flatConfigs.strict],
    plugins: {'react-hooks': hooks},
    languageOptions: {parserOptions: {projectService: true}},
    rules: {
      'react-hooks/rules-of-hooks': 'error',
      'react-hooks/exhaustive-deps': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', {allowNumber: true}],
      '@typescript-eslint/no-confusing-void-expression': ['error', {ignoreArrowShorthand: true}],
      'no-restricted-globals': ['error', {name: 'fetch', message: 'Only src/api calls fetch.'}],
    },
  },
  {files: ['src/api/**'], rules: {'no-restricted-globals': 'off'}},
);
