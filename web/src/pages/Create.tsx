import {Breadcrumb, BreadcrumbItem, Form, Label, PageSection, Wizard, WizardStep} from '@patternfly/react-core';
import {type ReactElement, useEffect, useState} from 'react';
import {Link, useNavigate, useSearchParams} from 'react-router';
import {type JobKey, useChoices, useCloneForm, useCreate, useNamespaces, usePreview} from '../api/queries';
import type {CloneForm, SpecRequest} from '../api/types';
import {PageHead} from '../components/Common';
import {Busy, Loaded} from '../components/States';
import {jobURL} from '../components/Watcher';
import {notify} from '../lib/notices';
import {AdvancedStep} from './create/AdvancedStep';
import {BasicsStep} from './create/BasicsStep';
import {ProgramStep} from './create/ProgramStep';
import {ResourcesStep} from './create/ResourcesStep';
import {ReviewStep} from './create/ReviewStep';
import {SaveTemplate} from './create/SaveTemplate';
import {TemplateStep} from './create/TemplateStep';
import {TypeStep} from './create/TypeStep';
import {YamlStep} from './create/YamlStep';
import {emptyForm, formOf, type JobForm, requestOf} from './create/form';
import {inputOf, problemsOf, stepFields} from './create/problems';

/** Reads ?clone=KIND/NAME&namespace=NAMESPACE. */
function cloneOf(params: URLSearchParams): JobKey | undefined {
  const [kind, name] = (params.get('clone') ?? '').split('/');
  const namespace = params.get('namespace');
  return kind && name && namespace ? {namespace, kind, name} : undefined;
}

/** Shows a step of the wizard from its top, with the focus on its heading: it opens as far down as the step before was scrolled. */
function startAtTop(): void {
  const heading = document.querySelector<HTMLElement>('.mpi-wizard .pf-v6-c-wizard__main h2');
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({preventScroll: true});
  for (let above = heading.parentElement; above; above = above.parentElement) above.scrollTop = 0;
  heading.scrollIntoView({block: 'nearest'});
}

/** The wizard that creates a job. Nobody has to see YAML. */
export function Create(): ReactElement {
  const [params] = useSearchParams();
  const original = cloneOf(params);
  const clone = useCloneForm(original);
  if (!original) return <CreateWizard key="new" initial={{...emptyForm, namespace: params.get('namespace') ?? ''}} />;
  if (clone.data) return <CreateWizard key={jobURL(original)} initial={formOf(clone.data)} original={original} clone={clone.data} />;
  return (
    <PageSection hasBodyWrapper={false}>
      <Loaded query={clone} what={`The job ${original.name} cannot be cloned`}>
        {() => <Busy what="The job is read" />}
      </Loaded>
    </PageSection>
  );
}

function CreateWizard({initial, original, clone}: {initial: JobForm; original?: JobKey; clone?: CloneForm}): ReactElement {
  const navigate = useNavigate();
  const {data: namespaces} = useNamespaces();
  const [form, setForm] = useState<JobForm>(initial);
  // A project in the URL is checked at once: the user may have no right to create jobs there.
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set(initial.namespace ? ['namespace'] : []));
  const creatable = namespaces?.namespaces.filter(({canCreate}) => canCreate) ?? [];
  const namespace = form.namespace === '' && !touched.has('namespace') && creatable.length === 1 ? (creatable[0]?.name ?? '') : form.namespace;
  const {data: choices} = useChoices(creatable.some(({name}) => name === namespace) || namespaces?.complete === false ? namespace : '');
  // Without another choice, a job asks for GPUs that the cluster has.
  const gpus = choices?.gpus ?? [];
  const gpuResource = original || touched.has('gpuResource') || gpus.includes(form.gpuResource) ? form.gpuResource : (gpus[0] ?? form.gpuResource);
  const current = {...form, namespace, gpuResource};
  const request: SpecRequest = {...requestOf(current), ...(clone?.request.original && current.way === initial.way ? {original: clone.request.original} : {})};
  const preview = usePreview(request, true);
  const creation = useCreate();
  const [step, setStep] = useState<string | number>();
  useEffect(() => {
    if (step !== undefined) startAtTop();
  }, [step]);
  const draft = preview.data;
  const set = (change: Partial<JobForm>): void => {
    if (!creation.isPending) creation.reset(); // what was wrong may be mended
    setForm({...current, ...change});
    setTouched(new Set([...touched, ...Object.keys(change), ...Object.keys(change.values ?? {}).map((name) => `value-${name}`)]));
  };
  const problems = problemsOf(current, draft, namespaces);
  const errorOf = (field: string): string | undefined => (touched.has(inputOf[field] ?? field) ? problems.get(field) : undefined);
  const isBlocked = (step: keyof typeof stepFields): boolean => stepFields[step].some((field) => problems.has(field));
  const props = {form: current, set, errorOf, choices};
  const create = (): void =>
    creation.mutate(request, {
      onSuccess: (result) => {
        if (!result.created) return;
        const url = jobURL({namespace: result.namespace ?? '', kind: result.kind ?? '', name: result.name ?? ''});
        notify({variant: 'success', title: `${result.name ?? 'The job'} is created`});
        void navigate(url);
      },
    });
  const shownDraft = creation.data?.problem && !preview.isFetching ? creation.data : draft;
  const isYaml = current.way === 'yaml';
  const isTemplate = current.way === 'template';
  const isForm = !isYaml && !isTemplate;
  useEffect(() => {
    // PatternFly names the list of steps on narrow screens "Wizard toggle"; its name is the step that it shows.
    document.querySelector('.pf-v6-c-wizard__toggle')?.removeAttribute('aria-label');
  });
  const body = (content: ReactElement): ReactElement => (
    <Form className="mpi-form is-wide" onSubmit={(event) => event.preventDefault()}>
      {content}
    </Form>
  );
  return (
    <>
      <PageSection hasBodyWrapper={false} type="breadcrumb">
        <Breadcrumb>
          <BreadcrumbItem>
            <Link to="/">Training jobs</Link>
          </BreadcrumbItem>
          {original ? (
            <BreadcrumbItem>
              <Link to={jobURL(original)}>{original.name}</Link>
            </BreadcrumbItem>
          ) : null}
          <BreadcrumbItem isActive>{original ? 'Clone' : 'Create'}</BreadcrumbItem>
        </Breadcrumb>
      </PageSection>
      <PageHead title={original ? `Clone ${original.name}` : 'Create training job'} text={original ? 'All values are those of the job. Change what you want; the original stays as it is.' : 'The wizard proposes what you do not know. Everything is checked by the cluster before it is created.'} />
      <PageSection hasBodyWrapper={false} isFilled className="mpi-wizard">
        <Wizard navAriaLabel="Steps" shouldFocusContent={false} onStepChange={(_, {id}) => setStep(id)} onClose={() => void navigate('/')} onSave={create} isVisitRequired={false}>
          <WizardStep name="Type" id="type">
            {body(<TypeStep {...props} clone={clone} original={original} />)}
          </WizardStep>
          <WizardStep name="Basics" id="basics" footer={{isNextDisabled: isBlocked('basics') && !isYaml || (isYaml && problems.has('namespace') && namespace !== '')}}>
            {body(<BasicsStep {...props} namespaces={namespaces?.namespaces ?? []} isClone={original !== undefined} />)}
          </WizardStep>
          {/* Steps that do not apply are left out: PatternFly counts hidden steps in the number of a step. */}
          {isYaml ? (
            <WizardStep name="YAML" id="yaml-step" footer={{isNextDisabled: current.yaml.trim() === '' || isBlocked('yaml')}}>
              {body(<YamlStep {...props} draft={draft} />)}
            </WizardStep>
          ) : null}
          {isTemplate ? (
            <WizardStep name="Template" id="template-step" footer={{isNextDisabled: current.template === '' || (draft?.problem?.fields ?? []).length > 0 || preview.isFetching}}>
              {body(<TemplateStep form={current} set={set} problems={problems} touched={touched} />)}
            </WizardStep>
          ) : null}
          {isForm ? (
            <WizardStep name="Image and command" id="program" footer={{isNextDisabled: isBlocked('program')}}>
              {body(<ProgramStep {...props} />)}
            </WizardStep>
          ) : null}
          {isForm ? (
            <WizardStep name="Workers and resources" id="resources" footer={{isNextDisabled: isBlocked('resources')}}>
              {body(<ResourcesStep {...props} draft={draft} />)}
            </WizardStep>
          ) : null}
          {isForm ? (
            <WizardStep name={<>Advanced <Label isCompact>optional</Label></>} id="advanced">
              {body(<AdvancedStep {...props} />)}
            </WizardStep>
          ) : null}
          <WizardStep
            name="Review"
            id="review"
            footer={{nextButtonText: 'Create job', isNextDisabled: draft === undefined || draft.problem !== undefined || preview.isFetching || creation.isPending, nextButtonProps: {isLoading: creation.isPending}}}
          >
            <ReviewStep clone={clone} draft={shownDraft} isChecking={preview.isFetching} error={preview.error} failure={creation.error} save={isTemplate ? null : <SaveTemplate request={request} namespace={shownDraft?.namespace ?? namespace} />} />
          </WizardStep>
        </Wizard>
      </PageSection>
    </>
  );
}
