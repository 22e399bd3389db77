import {Button, EmptyState, EmptyStateBody, FormSelect, FormSelectOption, Label, LabelGroup, Switch} from '@patternfly/react-core';
import {Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import {type ReactElement, useState} from 'react';
import {type JobKey, useEvents} from '../../api/queries';
import type {Detail} from '../../api/types';
import {Age} from '../../components/Common';
import {Loaded} from '../../components/States';
import {ExclamationTriangleIcon, InfoCircleIcon} from '../../lib/icons';
import {useParameters} from '../../lib/parameters';
import {timeOfDay} from '../../lib/time';

/** The Kubernetes events of the job and its pods, the latest first. */
export default function EventsTab({job}: {job: JobKey; detail: Detail}): ReactElement {
  const events = useEvents(job);
  const [onlyWarnings, setOnlyWarnings] = useState(false);
  const {params, refine} = useParameters();
  const [object, from, to] = [params.get('object') ?? '', params.get('from') ?? '', params.get('to') ?? ''];
  const isWithin = (time: string): boolean => !(Date.parse(time) < Date.parse(from)) && !(Date.parse(time) > Date.parse(to));
  return (
    <Loaded query={events} what="The events cannot be shown">
      {(data) => {
        const shown = data.events.filter((event) => (!onlyWarnings || event.warning) && (!object || event.object === object) && isWithin(event.time)).reverse();
        const objects = [...new Set([...data.events.map((event) => event.object), ...(object ? [object] : [])])].sort();
        const isFiltered = onlyWarnings || object !== '' || from !== '' || to !== '';
        return (
          <div className="mpi-stack">
            <div className="mpi-actions mpi-filters">
              <FormSelect aria-label="Object of the events" value={object} onChange={(_, value) => refine({object: value})} className="mpi-project">
                <FormSelectOption value="" label="All objects" />
                {objects.map((name) => (
                  <FormSelectOption key={name} value={name} label={name} />
                ))}
              </FormSelect>
              <Switch label="Only warnings" isChecked={onlyWarnings} onChange={(_, on) => setOnlyWarnings(on)} />
              {from || to ? (
                <LabelGroup categoryName="Time">
                  <Label onClose={() => refine({from: '', to: ''})} closeBtnAriaLabel="Show the events of all times">
                    {from ? timeOfDay(from) : '…'} – {to ? timeOfDay(to) : '…'}
                  </Label>
                </LabelGroup>
              ) : null}
            </div>
            {shown.length === 0 ? (
              <EmptyState titleText={isFiltered && data.events.length > 0 ? 'No event matches' : 'No events'} headingLevel="h2" variant="sm">
                <EmptyStateBody>
                  {isFiltered && data.events.length > 0 ? (
                    <Button
                      variant="link"
                      onClick={() => {
                        setOnlyWarnings(false);
                        refine({object: '', from: '', to: ''});
                      }}
                    >
                      Show all {data.events.length} events
                    </Button>
                  ) : null}
                  <p>Kubernetes deletes events after an hour. The timeline in the overview is kept.</p>
                </EmptyStateBody>
              </EmptyState>
            ) : (
              <Table aria-label="Events of the job" variant="compact" gridBreakPoint="grid-lg">
                <Thead>
                  <Tr>
                    {['Age', 'Reason', 'Object', 'Message'].map((title) => (
                      <Th key={title} modifier={title === 'Message' ? 'wrap' : 'fitContent'}>
                        {title}
                      </Th>
                    ))}
                  </Tr>
                </Thead>
                <Tbody>
                  {shown.map((event, i) => (
                    <Tr key={i}>
                      <Td dataLabel="Age" className="mpi-numbers">
                        <Age at={event.time} />
                      </Td>
                      <Td dataLabel="Reason">
                        <Label isCompact color={event.warning ? 'orange' : 'grey'} icon={event.warning ? <ExclamationTriangleIcon /> : <InfoCircleIcon />}>
                          {event.reason}
                        </Label>
                      </Td>
                      <Td dataLabel="Object" className="mpi-wrap">{event.object}</Td>
                      <Td dataLabel="Message" className="mpi-wrap">
                        {event.message}
                        {event.count > 1 ? <span className="mpi-subtle"> ({event.count} times)</span> : null}
                      </Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            )}
          </div>
        );
      }}
    </Loaded>
  );
}
