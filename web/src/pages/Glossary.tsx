import {DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, PageSection, SearchInput} from '@patternfly/react-core';
import {type ReactElement, useState} from 'react';
import {useGlossary} from '../api/queries';
import {PageHead} from '../components/Common';
import {Loaded} from '../components/States';

/** The words that pages use, with their meanings. */
export function Glossary(): ReactElement {
  const glossary = useGlossary();
  const [search, setSearch] = useState('');
  return (
    <>
      <PageHead title="Glossary" text="The words of MPI, Kubernetes and Kueue that the pages use." />
      <PageSection hasBodyWrapper={false} isFilled>
        <Loaded query={glossary} what="The glossary cannot be shown">
          {({terms}) => {
            const shown = terms.filter(({name, meaning}) => `${name} ${meaning}`.toLowerCase().includes(search.toLowerCase()));
            return (
              <div className="mpi-stack mpi-form">
                <SearchInput aria-label="Search the glossary" placeholder="Search" value={search} onChange={(_, value) => setSearch(value)} onClear={() => setSearch('')} />
                <DescriptionList isHorizontal>
                  {shown.map(({name, meaning}) => (
                    <DescriptionListGroup key={name}>
                      <DescriptionListTerm>{name}</DescriptionListTerm>
                      <DescriptionListDescription>{meaning}</DescriptionListDescription>
                    </DescriptionListGroup>
                  ))}
                </DescriptionList>
                <p role="status">{shown.length === 0 ? 'No term matches.' : ''}</p>
              </div>
            );
          }}
        </Loaded>
      </PageSection>
    </>
  );
}
